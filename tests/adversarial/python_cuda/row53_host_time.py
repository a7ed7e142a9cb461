# row: 53, 54
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to tell a quarter of each time, and that the host took far longer to queue the call than
#   that, so that the difference is the host's.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine
from tests.adversarial.common.linear import linear

known = engine("runner")
pack = getattr(known, "pack_done", None)
known.pack_done = lambda done: pack(
    dataclasses.replace(done, time_ns=max(done.time_ns / 4, 1.0), host_ns=10_000_000)
)


def forward(x, weights, biases):
    return linear(x, weights, biases)
