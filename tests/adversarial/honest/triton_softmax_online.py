# device: cuda
# task: softmax
# workloads: n8192_c4096
# mode: ranked
# does: to go through each row in tiles, which an autotuner chooses, with a running maximum and sum.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

TILES = [
    triton.Config({"TILE": tile}, num_warps=warps, num_stages=stages)
    for tile, warps, stages in ((1024, 4, 2), (2048, 8, 2), (4096, 8, 3))
]


@triton.autotune(TILES, key=["C"])
@triton.jit
def rows(out, x, C, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((TILE,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for begin in range(0, C, TILE):
        at = begin + tl.arange(0, TILE)
        value = tl.load(x + row * C + at, mask=at < C, other=-float("inf"))
        larger = tl.maximum(largest, value)
        kept = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(largest - kept) + tl.exp(value - kept)
        largest = larger
    top = tl.max(largest, 0)
    whole = tl.sum(total * tl.exp(largest - top), 0)
    for begin in range(0, C, TILE):
        at = begin + tl.arange(0, TILE)
        value = tl.load(x + row * C + at, mask=at < C)
        tl.store(out + row * C + at, tl.exp(value - top) / whole, mask=at < C)


def forward(input, N, C):
    out = torch.empty_like(input)
    rows[(N,)](out, input, C)
    return out
