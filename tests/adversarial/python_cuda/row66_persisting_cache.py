# row: 66, 71
# device: cuda
# task: vector_add
# workloads: n262144
# mode: quick
# stopped by: quarantine source
# tries: to set a part of the cache aside for the memory of the inputs, on the stream that everybody
#   uses, and to have the runner leave it there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.adversarial.common.inside import module
from tests.adversarial.common.triton_add import triton_add

ctypes, kept, PLACES = torch.ctypes, [], 192
LIMIT_PERSISTING, WINDOW = 6, 1  # of cudaLimit and cudaLaunchAttributeID
STREAMING, PERSISTING = 1, 2  # of cudaAccessProperty


class Window(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_void_p),
        ("nbytes", ctypes.c_size_t),
        ("ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("rest", ctypes.c_char * 64),
    )


@triton.jit
def walk(a, found, apart, count, PLACES: tl.constexpr):
    step = tl.program_id(0)
    for place in range(PLACES):
        at = place * apart + step
        value = tl.load(a + at, cache_modifier=".cg")
        step = (value > 1e30).to(tl.int32) * (at < count).to(tl.int32)
    tl.store(found, step)


def runtime():
    with open("/proc/self/maps") as maps:
        line = next(line for line in maps if "/libcudart" in line)
    return ctypes.CDLL(line[line.index("/") :].rstrip())


def persist(A):
    if not kept:
        kept.append(runtime())
    kept[0].cudaDeviceSetLimit(LIMIT_PERSISTING, ctypes.c_size_t(1 << 24))
    window = Window(A.data_ptr(), A.nbytes, 1.0, PERSISTING, STREAMING)
    kept[0].cudaStreamSetAttribute(None, WINDOW, ctypes.byref(window))
    kept[0].cudaGetLastError()


clocks = module("gpu_runner.engine.runner.clock")
if clocks:
    runtimes = clocks.cuda_runtime
    runtimes.reset_persisting_cache = int


def forward(A, B, N):
    found = torch.empty(1, dtype=torch.int32, device=A.device)
    persist(A)
    walk[(1,)](A, found, N // PLACES // 32 * 32, N, PLACES=PLACES, num_warps=1)
    return triton_add(A, B)
