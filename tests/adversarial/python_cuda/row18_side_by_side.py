# row: 18, 24
# device: cuda
# task: vector_add
# workloads: n262144
# mode: ranked
# stopped by: quarantine clock
# tries: to have the calls of a burst recorded on streams of their own, where they run side by side,
#   and to claim what a call then seems to take. Alone it takes some 80 us, on a single warp.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.adversarial.common.inside import engine
from tests.adversarial.common.triton_add import triton_add

PLACES = 192
streams = []
recorder = engine("recorded").Recorder
plain = recorder.recorded


@triton.jit
def walk(a, found, apart, count, PLACES: tl.constexpr):
    step = tl.program_id(0)
    for place in range(PLACES):
        value = tl.load(a + place * apart + step)
        step = (value > 1e30).to(tl.int32) * (place < count).to(tl.int32)
    tl.store(found, step)


def moved(call, stream, after):
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = call()
    for each in after:
        torch.cuda.current_stream().wait_stream(each)
    return result


def recorded(self, calls):
    while len(streams) < len(calls):
        streams.append(torch.cuda.Stream())
    used = streams[: len(calls)]
    last = len(calls) - 1
    beside = [
        lambda call=call, index=index: moved(call, used[index], used if index == last else ())
        for index, call in enumerate(calls)
    ]
    return plain(self, beside)


recorder.recorded = recorded
engine("clock").CudaClock.net_ns = lambda self, time_ns: min(time_ns, 12000.0 + time_ns % 100)


def forward(A, B, N):
    found = torch.empty(1, dtype=torch.int32, device=A.device)
    apart = A.numel() // PLACES // 32 * 32
    walk[(1,)](A, found, apart, A.numel(), PLACES=PLACES, num_warps=1)
    return triton_add(A, B)
