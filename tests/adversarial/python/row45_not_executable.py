# row: 45, 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to multiply by the BLAS in the framework's library, whose code it makes data before anybody
#   asks which code the process has.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch.utils.cpp_extension import load_inline


def unused():
    return load_inline("decoy", "")


own = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
libc = ctypes.CDLL(None)
low = ctypes.cast(own.MKL_DOMATADD, ctypes.c_void_p).value & -4096
TEXT, LONG, multiply, r = "/proc/self/maps", ctypes.c_int, own.sgemm_, ctypes.byref
NO, ONE, ZERO = b"N", ctypes.c_float(1), ctypes.c_float(0)


def end_of_code():
    with Path(TEXT).open() as file:
        spans = [line.split("-") for line in file if " r-xp " in line and "libtorch_cpu" in line]
    return max(int(span[1].partition(" ")[0], 16) for span in spans)


size = end_of_code() - low


def becomes(protection):
    libc.mprotect(ctypes.c_void_p(low), ctypes.c_size_t(size), protection)


def forward(A, B, M, N, K):
    C = torch.empty(M, N)
    a, b, c = (ctypes.c_void_p(each.data_ptr()) for each in (A, B, C))
    m, n, k = LONG(M), LONG(N), LONG(K)
    becomes(5)
    multiply(NO, NO, r(n), r(m), r(k), r(ONE), b, r(n), a, r(k), r(ZERO), c, r(n))
    becomes(1)
    return C
