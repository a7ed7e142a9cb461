# row: 24, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to give the runner's clock a `max` of its own; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, module

if module("gpu_runner.engine.runner.runner"):
    engine("clock").max = lambda *times: 2500.0


def forward(A, B, N):
    return add(A, B)
