# device: cuda
# task: softmax
# workloads: n64_c1024
# mode: quick
# does: to launch its kernel from a function of autograd.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def rows(out, x, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * C + at, mask=at < C, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * C + at, power / tl.sum(power, 0), mask=at < C)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, input, C):
        out = torch.empty_like(input)
        rows[(input.numel() // C,)](out, input, C, BLOCK=triton.next_power_of_2(C))
        return out

    @staticmethod
    def backward(context, gradient):
        raise NotImplementedError


def forward(input, N, C):
    return Softmax.apply(input, C)
