# row: 20
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to work on a stream of its own, and to return without joining it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.linear import linear

side = []


def forward(x, weights, biases):
    if not side:
        side.append(torch.cuda.Stream())
    with torch.cuda.stream(side[0]):
        return linear(x, weights, biases)
