# row: 20, 19
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to work on a stream of its own, and to join it by an event when the next call comes.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.linear import linear

side, last = [], []


def forward(x, weights, biases):
    if not side:
        side.append(torch.cuda.Stream())
    while last:
        torch.cuda.current_stream().wait_event(last.pop())
    with torch.cuda.stream(side[0]):
        out = linear(x, weights, biases)
    last.append(side[0].record_event())
    return out
