# row: 36, 33
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: strides
# tries: to return one element, seen as many.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    return (A[:1] + B[:1]).expand(N)
