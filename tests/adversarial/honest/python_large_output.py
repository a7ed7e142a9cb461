# task: matrix_scalar_mul
# workloads: cpu_m512_n512
# mode: ranked
# libraries: allowed
# does: to return a megabyte of new memory in each call.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, scalar, M, N):
    return A * scalar
