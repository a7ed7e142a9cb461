# row: 24, 26
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to replace the method that takes the clock's own part off a time.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import engine
from tests.adversarial.common.linear import linear

engine("clock").CudaClock.net_ns = lambda self, time_ns: 3000.0


def forward(x, weights, biases):
    return linear(x, weights, biases)
