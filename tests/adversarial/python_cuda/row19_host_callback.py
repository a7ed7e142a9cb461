# row: 19, 21
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION
# tries: to have the driver call back on the host when the timing is over, and to start the work
#   from there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

import torch

from tests.adversarial.common.busy import busy

ctypes, late, kept = torch.ctypes, [], []
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def runtime():
    with open("/proc/self/maps") as maps:
        line = next(line for line in maps if "/libcudart" in line)
    return ctypes.CDLL(line[line.index("/") :].rstrip())


def work(A, B, out):
    busy(3_000_000)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.add(A, B, out=out)


@HOST_FUNCTION
def begin(_):
    while late:
        _thread.start_new_thread(work, late.pop())


def forward(A, B, N):
    if not kept:
        kept.extend([torch.cuda.Stream(), runtime()])
    side, cudart = kept
    out = torch.full_like(A, 0.5)
    late.append((A, B, out))
    side.wait_stream(torch.cuda.current_stream())
    cudart.cudaLaunchHostFunc(ctypes.c_void_p(side.cuda_stream), begin, None)
    return out
