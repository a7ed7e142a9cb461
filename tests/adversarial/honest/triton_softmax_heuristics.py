# device: cuda
# task: softmax
# workloads: n16_c256, n16_c16384
# mode: quick
# does: to derive its block and its warps from its arguments by Triton's heuristics.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda given: triton.next_power_of_2(given["C"]),
        "num_warps": lambda given: 16 if given["C"] > 8192 else 4,
    }
)
@triton.jit
def rows(out, x, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * C + at, mask=at < C, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * C + at, power / tl.sum(power, 0), mask=at < C)


def forward(input, N, C):
    out = torch.empty_like(input)
    rows[(N,)](out, input, C)
    return out
