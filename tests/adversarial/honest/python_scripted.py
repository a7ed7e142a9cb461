# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# does: to be a scripted function with a tensor of its own that depends on nothing but shapes.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


@torch.jit.script
def fused(x: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor) -> torch.Tensor:
    ones = torch.ones(x.shape[0], 1, dtype=x.dtype)
    wide = torch.cat([x, ones], 1)
    return torch.relu(wide @ torch.cat([weights, biases[:, None]], 1).t())


def forward(x, weights, biases):
    return fused(x, weights, biases)
