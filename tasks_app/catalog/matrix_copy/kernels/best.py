"""Copy of a matrix at the speed of memory.

- Nothing but memory counts here: each element is read once and written once. A thread handles 16
  of a block's elements, and loads and stores them 16 bytes at a time, so that many loads are
  under way at once and hide each other's latency.
- Short vectors get smaller blocks, so that more multiprocessors share the work.
- Only what lies behind the last element is masked. Positions are 64 bits wide in the address
  alone: vectors may have more than 2^31 bytes.
- The matrix itself comes back as it came: it's never written to.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def copied(out, x, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    held = at < N
    value = tl.load(x + at, held)
    tl.store(out + at, value, held)


def forward(A, M, N):
    out = torch.empty_like(A)
    count = M * N
    block, warps = (512, 2) if count <= 2**18 else (4096, 8)
    copied[(triton.cdiv(count, block),)](out, A, count, BLOCK=block, num_warps=warps)
    return A, out
