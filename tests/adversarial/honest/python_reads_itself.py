# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# does: to be scripted from its own text and to read its file, as compilers of functions do.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import linecache

import torch


def fused(x: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.addmm(biases, x, weights.t()))  # read back below


scripted = torch.jit.script(fused)
lines = linecache.getlines(__file__)
assert any("torch.relu(torch.addmm" in line for line in lines)
assert "def fused(x: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor)" in "".join(lines)


def forward(x, weights, biases):
    return scripted(x, weights, biases)
