# device: cuda
# task: relu
# workloads: n65536, n16777216
# mode: quick
# does: to have few blocks walk over all of the input, and to write all of an output that was empty.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def rectify(out, x, count, blocks, BLOCK: tl.constexpr):
    for begin in range(tl.program_id(0) * BLOCK, count, blocks * BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < count)
        tl.store(out + at, tl.maximum(value, 0.0), mask=at < count)


def forward(input, N):
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    blocks = min(triton.cdiv(N, 1024), 264)
    rectify[(blocks,)](out, input, N, blocks, BLOCK=1024)
    return out
