# device: cuda
# task: dot_product
# workloads: n65536, n1048576
# mode: quick
# does: to sum up in two kernels, the first of which leaves its parts in scratch memory.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def parts_of(x, y, parts, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    product = tl.load(x + at, mask=inside, other=0.0) * tl.load(y + at, mask=inside, other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(product, 0))


@triton.jit
def sum_of(parts, out, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(parts + at, mask=at < count, other=0.0), 0))


def forward(X, Y, N):
    blocks = triton.cdiv(N, 4096)
    parts = torch.empty(blocks, device=X.device)
    out = torch.empty(1, device=X.device)
    parts_of[(blocks,)](X, Y, parts, N, BLOCK=4096)
    sum_of[(1,)](parts, out, blocks, BLOCK=triton.next_power_of_2(blocks))
    return out
