# row: 26, 51
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# stopped by: verdict VIOLATION: left work running
# at least: 200000 ns
# tries: to work on another stream, which single calls hide, and to answer bursts before their work
#   has ended.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import engine
from tests.adversarial.common.linear import linear

known, side = engine("runner").Runner, []
true_burst = getattr(known, "_burst", None)


def burst(self, burst_id, calls):
    clock = self._clock
    clock.finish = lambda: torch.cuda.current_stream().wait_stream(side[0])
    try:
        return true_burst(self, burst_id, calls)
    finally:
        del clock.finish


known._burst = burst


def forward(x, weights, biases):
    if not side:
        side.append(torch.cuda.Stream())
    with torch.cuda.stream(side[0]):
        return linear(x, weights, biases)
