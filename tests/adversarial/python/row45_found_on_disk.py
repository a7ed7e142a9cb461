# row: 45
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to open the BLAS that another package brings.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy
import torch

folder = Path(numpy.__file__).parents[1] / "numpy.libs"
blas = ctypes.CDLL(str(next(folder.glob("*openblas*"))))
LONG, FLOAT, ADDRESS = ctypes.c_long, ctypes.c_float, ctypes.c_void_p


def forward(A, B, M, N, K):
    C = torch.empty(M, N)
    a, b, c = (ADDRESS(each.data_ptr()) for each in (A, B, C))
    m, n, k = LONG(M), LONG(N), LONG(K)
    blas.scipy_cblas_sgemm64_(101, 111, 111, m, n, k, FLOAT(1), a, k, b, n, FLOAT(0), c, n)
    return C
