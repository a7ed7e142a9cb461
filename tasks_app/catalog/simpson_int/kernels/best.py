"""Simpson's rule at the speed of memory.

- Only memory counts here: programs, a few for each multiprocessor, walk over the vector in steps
  and load 16 bytes a thread at a time. Each thread keeps sums of its own in float32, so that
  nothing crosses threads until the end.
- Each program writes one partial sum, and a second kernel of a single program adds these up. In
  place of atomics, this gives the same result each time and needs nothing cleared first.
- Short vectors get fewer programs: what a program reads should outweigh its start.
- Each sample is read once. It weighs 4 in the middle of a segment, 2 between two segments and 1
  at the ends; one behind the last segment weighs nothing.
- The last kernel multiplies by a third of the step, which the host takes in float64.
- Sums in several hundred thousand pieces also err less than one after the other.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def partial_sums(parts, x, N, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    inner = tl.arange(0, BLOCK)
    for first in range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK):
        at = first + inner
        held = at < N
        value = tl.load(x + at, held, other=0.0).to(tl.float32)
        end = (N - 1) // 2 * 2
        sides = (at < end).to(tl.float32) + ((at > 0) & (at <= end)).to(tl.float32)
        middle = tl.where(at < end, 4.0, 0.0)
        total += value * tl.where(at % 2 == 1, middle, sides)
    tl.store(parts + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def sum_of_parts(out, parts, count, third, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(parts + at, at < count, other=0.0), 0)
    tl.store(out, (total * third).to(out.dtype.element_ty))


def forward(y_samples, a, b, N):
    processors = torch.cuda.get_device_properties(y_samples.device).multi_processor_count
    block = 1024 if N <= 2**20 else 4096
    count = min(triton.cdiv(N, block), 4 * processors)
    parts = torch.empty(count, device=y_samples.device)
    out = torch.empty(1, device=y_samples.device, dtype=y_samples.dtype)
    partial_sums[(count,)](parts, y_samples, N, BLOCK=block, num_warps=8)
    sum_of_parts[(1,)](
        out, parts, count, (b - a) / (N - 1) / 3, BLOCK=triton.next_power_of_2(count)
    )
    return out
