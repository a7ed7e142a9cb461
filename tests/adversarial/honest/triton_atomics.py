# device: cuda
# task: histogram
# workloads: n1048576_bins256_skew0, n65536_bins4096_skew0
# mode: quick
# does: to count by atomic additions on an output that it has set to zero.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def count_up(x, counts, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.atomic_add(counts + tl.load(x + at, mask=inside, other=0), 1, mask=inside)


def forward(input, N, bins):
    counts = torch.zeros(bins, dtype=torch.int32, device=input.device)
    count_up[(triton.cdiv(N, 1024),)](input, counts, N, BLOCK=1024)
    return counts
