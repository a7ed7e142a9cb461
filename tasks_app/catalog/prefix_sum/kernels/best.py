"""Inclusive prefix sum of a vector in three short passes.

- Each program takes one part of the vector. The first kernel writes the sum of each part. The
  second, with a single program, turns these into the sum of everything before each part. The third
  scans each part from there. The vector is read twice, the second time from the L2 cache unless it
  is too long.
- Within a part, each thread scans its own elements, then the threads' sums are scanned, all on
  chip.
- Kernels on a stream run in order, so nothing has to be cleared, no program waits for another, and
  results are deterministic.
- A vector that fits into one part needs only one kernel.
- Sums are float32, even for BF16, and each result is rounded once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sums_of_parts(sums, x, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < N, other=0.0).to(tl.float32)
    tl.store(sums + tl.program_id(0), tl.sum(value, 0))


@triton.jit
def before_parts(sums, count, BLOCK: tl.constexpr):
    """Replace each sum with the sum of all those before it."""
    at = tl.arange(0, BLOCK)
    before = 0.0
    for first in range(0, count, BLOCK):
        held = first + at < count
        value = tl.load(sums + first + at, held, other=0.0)
        tl.store(sums + first + at, tl.cumsum(value, 0) - value + before, held)
        before += tl.sum(value, 0)


@triton.jit
def scanned(out, x, before, N, BEFORE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < N, other=0.0).to(tl.float32)
    result = tl.cumsum(value, 0)
    if BEFORE:
        result += tl.load(before + tl.program_id(0))
    tl.store(out + at, result.to(out.dtype.element_ty), at < N)


def forward(input, N):
    out = torch.empty_like(input)
    block = min(4096, max(32, triton.next_power_of_2(N)))
    parts = triton.cdiv(N, block)
    sums = out
    if parts > 1:
        sums = torch.empty(parts, device=input.device)
        sums_of_parts[(parts,)](sums, input, N, BLOCK=block, num_warps=8)
        before_parts[(1,)](sums, parts, BLOCK=min(4096, triton.next_power_of_2(parts)), num_warps=8)
    scanned[(parts,)](out, input, sums, N, BEFORE=parts > 1, BLOCK=block, num_warps=8)
    return out
