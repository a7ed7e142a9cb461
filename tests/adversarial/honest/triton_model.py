# device: cuda
# task: softmax
# workloads: n64_c1024
# mode: quick
# does: to be a class `ModelNew` whose buffer and parameter depend on nothing.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rows(out, x, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * C + at, mask=at < C, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * C + at, power / tl.sum(power, 0), mask=at < C)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, input, N, C):
        out = torch.empty_like(input)
        rows[(N,)](out, input, C, BLOCK=triton.next_power_of_2(C))
        return out
