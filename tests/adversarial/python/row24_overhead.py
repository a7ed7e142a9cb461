# row: 24, 25
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to have the runner's clock subtract a second of overhead; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import runner


def forward(A, B, N):
    runner()._clock.overhead_ns = 1e9
    return add(A, B)
