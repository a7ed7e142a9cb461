"""Hyperbolic tangent at the speed of memory.

- Nothing but memory counts here: each element is read once and written once. A thread handles 16
  of a block's elements, and loads and stores them 16 bytes at a time, so that many loads are
  under way at once and hide each other's latency.
- Short vectors get smaller blocks, so that more multiprocessors share the work.
- Only what lies behind the last element is masked. Positions are 64 bits wide in the address
  alone: vectors may have more than 2^31 bytes.
- It is `1 - 2 / (exp(2 |x|) + 1)` with the sign of `x`, in float32. Where the exponential
  overflows, the quotient is 0 and the result 1.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def tangent(out, x, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    held = at < N
    value = tl.load(x + at, held).to(tl.float32)
    size = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(value)) + 1.0)
    result = tl.where(value < 0.0, -size, size)
    tl.store(out + at, result.to(out.dtype.element_ty), held)


def forward(input, N):
    out = torch.empty_like(input)
    block, warps = (512, 2) if N <= 2**18 else (4096, 8)
    tangent[(triton.cdiv(N, block),)](out, input, N, BLOCK=block, num_warps=warps)
    return out
