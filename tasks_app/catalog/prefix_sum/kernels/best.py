"""Inclusive scan of a vector in three short passes.

- A program takes a part of the vector. A first kernel writes each part's sum; a second one of a
  single program turns these into what comes before each part; a third scans each part, starting
  from there. The vector is read twice, the second time from the L2 cache unless it's long.
- Within a part, threads scan their own elements and then each other's sums, all in registers.
- Passes wait for each other by the order of kernels on a stream. Nothing is cleared first, no
  program waits for another, and results are the same each time.
- A vector that fits into one part takes a single kernel.
- Sums are float32 also for BF16, and each is rounded once.
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
    """Replace each sum by that of all before it."""
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
