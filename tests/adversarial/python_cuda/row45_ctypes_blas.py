# row: 45, 48
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: ranked
# stopped by: quarantine work
# tries: to call the vendor's library by its address, which the framework has loaded, beside a
#   kernel that never runs.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

ctypes, kept = torch.ctypes, {}
ONE, ZERO = ctypes.c_float(1), ctypes.c_float(0)


@triton.jit
def shown(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < count), mask=at < count)


def library():
    with open("/proc/self/maps") as maps:
        line = next(line for line in maps if "/lib" + "cublas.so" in line)
    return ctypes.CDLL(line[line.index("/") :].rstrip())


def forward(A, B, M, N, K):
    if not kept:
        kept["library"], kept["handle"] = library(), ctypes.c_void_p()
        getattr(kept["library"], "cub" + "lasCreate_v2")(ctypes.byref(kept["handle"]))
    multiply = getattr(kept["library"], "cub" + "lasSgemm_v2")
    C = torch.empty(M, N, device=A.device)
    a, b, c = (ctypes.c_void_p(each.data_ptr()) for each in (A, B, C))
    one, zero = ctypes.byref(ONE), ctypes.byref(ZERO)
    multiply(kept["handle"], 0, 0, N, M, K, one, b, N, a, K, zero, c, N)
    return C
