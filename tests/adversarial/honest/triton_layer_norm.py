# device: cuda
# task: layer_norm
# workloads: n1024, n65536
# mode: quick
# does: to normalise a vector in three passes of one block, with masks and an epsilon.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def normalise(out, x, weight, bias, epsilon, count, TILE: tl.constexpr):  # noqa: PLR0917
    place = tl.arange(0, TILE)
    total = tl.zeros((TILE,), dtype=tl.float32)
    for begin in range(0, count, TILE):
        at = begin + place
        total += tl.load(x + at, mask=at < count, other=0.0)
    mean = tl.sum(total, 0) / count
    squares = tl.zeros((TILE,), dtype=tl.float32)
    for begin in range(0, count, TILE):
        at = begin + place
        apart = tl.load(x + at, mask=at < count, other=0.0) - mean
        squares += tl.where(at < count, apart * apart, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / count + epsilon)
    for begin in range(0, count, TILE):
        at = begin + place
        inside = at < count
        apart = tl.load(x + at, mask=inside) - mean
        value = apart * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside)
        tl.store(out + at, value, mask=inside)


def forward(input, weight, bias, epsilon, N):
    out = torch.empty_like(input)
    normalise[(1,)](out, input, weight, bias, epsilon, N, TILE=2048, num_warps=8)
    return out
