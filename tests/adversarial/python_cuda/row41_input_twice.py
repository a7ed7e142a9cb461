# row: 41, 73
# device: cuda
# task: matrix_copy
# mode: quick
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to return an input as the copy that was asked for: the runner's own copy, which nobody
#   times, does the work.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, M, N):
    return A, A
