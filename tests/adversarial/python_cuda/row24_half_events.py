# row: 24
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to have the events that the runner measures with tell half of the time.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.linear import linear

events = torch.cuda.Event
elapsed = events.elapsed_time
events.elapsed_time = lambda start, end: 0.5 * elapsed(start, end)


def forward(x, weights, biases):
    return linear(x, weights, biases)
