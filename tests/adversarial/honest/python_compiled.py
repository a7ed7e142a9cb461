# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# does: to be compiled by torch.compile, whose cache is carried from process to process.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


@torch.compile(dynamic=False)
def whole(x, weights, biases):
    return torch.relu(torch.addmm(biases, x, weights.t()))


def forward(x, weights, biases):
    return whole(x, weights, biases)
