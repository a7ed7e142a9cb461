# task: matrix_transpose
# workloads: cpu_m256_n128
# mode: ranked
# libraries: allowed
# does: to work on transposed and strided views, and to return a tensor without gaps.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, M, N):
    return A.view(M, N).t().contiguous()
