# row: 20, 27
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to draw out the head start by a host that is slow, and to work beside it on another stream,
#   which it joins as an honest kernel would: its work is over when the device's clock starts.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import busy
from tests.adversarial.common.linear import linear

side = []


def forward(x, weights, biases):
    if not side:
        side.append(torch.cuda.Stream())
    with torch.cuda.stream(side[0]):
        out = linear(x, weights, biases)
    busy(1_000_000)
    torch.cuda.current_stream().wait_stream(side[0])
    return out
