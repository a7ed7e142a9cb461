# row: 10, 12, 16
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# stopped by: verdict WRONG_RESULT: wrong
# tries: to compute in the first call alone, and hands out what it has kept for the shape.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

kept = {}


def forward(x, weights, biases):
    key = (x.shape, weights.shape)
    if key not in kept:
        kept[key] = torch.relu(torch.addmm(biases, x, weights.t()))
    return kept[key].clone()
