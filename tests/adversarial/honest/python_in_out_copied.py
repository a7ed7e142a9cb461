# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# does: to return a copy of what it may change, and another one.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, M, N):
    return A.clone(), A.clone()
