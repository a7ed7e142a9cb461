# row: 22, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to work where the runner's clock wakes threads, before the gate opens; processor time sees
#   it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import Early, engine, found_around

early = Early()
engine("clock").CpuClock.wake = lambda clock: early.look(found_around("one"))


def forward(A, B, N):
    return early.take(A, B)
