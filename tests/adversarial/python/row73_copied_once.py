# row: 73, 41
# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: same memory
# tries: to return one copy twice, where the copied matrix and the copy are asked for.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, M, N):
    copied = A.clone()
    return copied, copied
