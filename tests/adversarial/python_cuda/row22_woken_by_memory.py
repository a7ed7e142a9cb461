# row: 22, 5
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: construction
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION
# stopped by: verdict TIME_LIMIT
# must not print: GOT
# tries: to queue work that the device's front end starts when the memory of the inputs changes,
#   though the process stands still; nothing is resident until then.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import module

cuda, ctypes, kept = torch.cuda, torch.ctypes, {}
UNTIL_A_BIT_IS_CLEARED = 3  # CU_STREAM_WAIT_VALUE_NOR
cuda.synchronize = lambda device=None: cuda.current_stream().synchronize()


def lay(A, B):
    """Behind the work of this call, for the next one at the same addresses."""
    side = kept.setdefault("side", cuda.Stream())
    driver = kept.setdefault("driver", ctypes.CDLL("libcuda.so.1"))
    if not side.query():  # the last one has not been sprung
        return
    place = A[A.numel() // 2 :]
    word = place[:1].view(torch.int32).item()
    side.wait_stream(cuda.current_stream())
    driver.cuStreamWaitValue32_v2(
        ctypes.c_void_p(side.cuda_stream),
        ctypes.c_uint64(place.data_ptr()),
        ctypes.c_uint32(~word & 0xFFFFFFFF),
        ctypes.c_uint(UNTIL_A_BIT_IS_CLEARED),
    )
    with cuda.stream(side):
        kept["found"] = A.data_ptr(), B.data_ptr(), A.numel(), A + B
    kept["over"] = side.record_event()


def forward(A, B, N):
    found = kept.get("found", (0, 0, 0, None))
    if found[:3] == (A.data_ptr(), B.data_ptr(), N) and kept["over"].query():
        if torch.equal(found[3], A + B):
            print("GOT the result before the call came", flush=True)
        return found[3]
    out = A + B
    if module("gpu_runner.engine.runner.runner"):
        lay(A, B)
    return out
