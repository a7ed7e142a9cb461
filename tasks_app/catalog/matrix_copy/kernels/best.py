"""Matrix copy, limited by memory bandwidth.

- Each input element is read once, and each output element is written once. A thread handles 8 or 16
  elements, with 16-byte loads and stores if the element count is a multiple of 16. That keeps many
  loads in flight, which hide each other's latency.
- Small inputs get smaller blocks, so that more multiprocessors share the work.
- The mask only cuts off what is past the last element. Offsets are 64-bit, so there may be more
  than 2^31 elements.
- The input is returned as it is: the kernel never writes to it.
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
