# row: 13
# device: cuda
# task: linear_relu
# workloads: b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to transpose the weights once, when the first call comes, as if they were a layer's own.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

prepared = {}


def forward(x, weights, biases):
    if weights.shape not in prepared:
        prepared[weights.shape] = weights.t().contiguous()
    return torch.relu(torch.addmm(biases, x, prepared[weights.shape]))
