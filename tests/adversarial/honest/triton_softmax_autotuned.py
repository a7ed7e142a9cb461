# device: cuda
# task: softmax
# workloads: n64_c1024, n128_c4096
# mode: quick
# does: to have the number of warps chosen by Triton's autotuner, for each width.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({}, num_warps=warps) for warps in (2, 4, 8)]


@triton.autotune(CONFIGS, key=["C"])
@triton.jit
def rows(out, x, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * C + at, mask=at < C, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * C + at, power / tl.sum(power, 0), mask=at < C)


def forward(input, N, C):
    out = torch.empty_like(input)
    rows[(N,)](out, input, C, BLOCK=triton.next_power_of_2(C))
    return out
