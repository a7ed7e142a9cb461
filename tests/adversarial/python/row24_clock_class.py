# row: 24, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to replace the method that takes the clock's own part off a time; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

engine("clock").CpuClock.net_ns = lambda self, time_ns: 3000.0


def forward(A, B, N):
    return add(A, B)
