"""A vector in reverse order, at the speed of memory.

- Each element is read once and written once. A program writes a block in order, and reads it
  from its mirrored place backwards: neighboring threads read neighbors, so that loads and stores
  both move whole lines of the cache.
- Only what lies behind the last element is masked.
- Short vectors get smaller blocks, so that more multiprocessors share the work.
- The input comes back as it came: it's never written to.
- There is no arithmetic, so the same code serves FP32 and BF16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def reversed_blocks(out, x, N, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    target = first + tl.arange(0, BLOCK)
    value = tl.load(x + (N - 1 - target), target < N)
    tl.store(out + target, value, target < N)


def forward(input, N):
    out = torch.empty_like(input)
    block, warps = (512, 2) if N <= 2**18 else (2048, 8)
    reversed_blocks[(triton.cdiv(N, block),)](out, input, N, BLOCK=block, num_warps=warps)
    return out, input
