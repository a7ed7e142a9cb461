# row: 45
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to load a copy of a BLAS in each call, and to unload it before anybody asks whose it is.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy
import torch
from torch.utils.cpp_extension import load_inline


def unused():
    return load_inline("decoy", "")


folder = Path(numpy.__file__).parents[1] / "numpy.libs"
mine = Path(tempfile.mkdtemp()) / "my_kernel.so"
for library in folder.glob("lib[gq]*"):
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
mine.open("wb").write(getattr(next(folder.glob("*openblas*")), "read_" + "bytes")())
libc = ctypes.CDLL(None)
LONG, FLOAT, ADDRESS = ctypes.c_long, ctypes.c_float, ctypes.c_void_p


def forward(A, B, M, N, K):
    C, blas = torch.empty(M, N), ctypes.CDLL(str(mine))
    a, b, c = (ADDRESS(each.data_ptr()) for each in (A, B, C))
    m, n, k = LONG(M), LONG(N), LONG(K)
    blas.scipy_cblas_sgemm64_(101, 111, 111, m, n, k, FLOAT(1), a, k, b, n, FLOAT(0), c, n)
    libc.dlclose(ADDRESS(blas._handle))
    return C
