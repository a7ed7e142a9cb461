# device: cuda
# task: linear_relu
# workloads: b64_i128_o128, b4_i512_o256
# mode: quick
# does: to lay out weights anew in each call, in memory that it keeps by size.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

prepared = {}


@triton.jit
def layer(out, x, weights, biases, inner, wide, TILE: tl.constexpr):  # noqa: PLR0917
    row = tl.program_id(0)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.load(biases + column, mask=column < wide, other=0.0)
    for k in range(inner):
        weight = tl.load(weights + k * wide + column, mask=column < wide, other=0.0)
        total += tl.load(x + row * inner + k) * weight
    tl.store(out + row * wide + column, tl.maximum(total, 0.0), mask=column < wide)


def forward(x, weights, biases):
    (batch, inner), wide = x.shape, weights.shape[0]
    if (inner, wide) not in prepared:
        prepared[inner, wide] = torch.empty(inner, wide, device=x.device)
    turned = prepared[inner, wide].copy_(weights.t())
    out = torch.empty(batch, wide, device=x.device)
    layer[(batch, triton.cdiv(wide, 128))](out, x, turned, biases, inner, wide, TILE=128)
    return out
