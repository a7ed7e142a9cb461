# row: 40, 41
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: changed its input
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to add into its input, and to return that.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    return A.add_(B)
