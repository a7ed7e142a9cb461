# row: 41
# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to return an input as the copy that was asked for.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, M, N):
    return A, A
