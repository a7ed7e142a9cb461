"""Hinge loss of each sample at the speed of memory.

- Nothing but memory counts here: each element is read once and written once. A thread handles 16
  of a block's elements, and loads and stores them 16 bytes at a time, so that many loads are
  under way at once and hide each other's latency.
- Short vectors get smaller blocks, so that more multiprocessors share the work.
- Only what lies behind the last element is masked. Positions are 64 bits wide in the address
  alone: vectors may have more than 2^31 bytes.
- Labels are compared as integers. BF16 predictions are subtracted in float32 and rounded once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def losses(out, x, targets, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    held = at < N
    value = tl.load(x + at, held).to(tl.float32)
    target = tl.load(targets + at, held).to(tl.float32)
    loss = 1.0 - tl.where(target == 1, value, -value)
    tl.store(out + at, tl.maximum(loss, 0.0).to(out.dtype.element_ty), held)


def forward(predictions, targets, N):
    out = torch.empty_like(predictions)
    block, warps = (512, 2) if N <= 2**18 else (4096, 8)
    losses[(triton.cdiv(N, block),)](out, predictions, targets, N, BLOCK=block, num_warps=warps)
    return out
