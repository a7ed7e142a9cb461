# device: cuda
# task: rms_norm
# workloads: n1024, n65536
# mode: quick
# does: to ask the device for its properties as it is imported, as libraries of kernels do.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PROPERTIES = torch.cuda.get_device_properties(0)
WARPS = 8 if PROPERTIES.multi_processor_count > 100 else 4


@triton.jit
def normalise(out, x, weight, bias, epsilon, count, TILE: tl.constexpr):  # noqa: PLR0917
    place = tl.arange(0, TILE)
    squares = tl.zeros((TILE,), dtype=tl.float32)
    for begin in range(0, count, TILE):
        value = tl.load(x + begin + place, mask=begin + place < count, other=0.0)
        squares += value * value
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / count + epsilon)
    for begin in range(0, count, TILE):
        at = begin + place
        inside = at < count
        value = tl.load(x + at, mask=inside) * scale * tl.load(weight + at, mask=inside)
        tl.store(out + at, value + tl.load(bias + at, mask=inside), mask=inside)


def forward(input, weight, bias, epsilon, N):
    out = torch.empty_like(input)
    normalise[(1,)](out, input, weight, bias, epsilon, N, TILE=1024, num_warps=WARPS)
    return out
