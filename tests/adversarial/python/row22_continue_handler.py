# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to do what needs no inputs in the handler of the signal that continues it; processor time
#   sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _signal

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import found_around

early = []


def on_continue(number, frame):
    one = found_around("one", frame)
    if one is not None and found_around("meanwhile", frame) and one not in early:
        early[:] = [one]
        busy(2_000_000)


_signal.signal(_signal.SIGCONT, on_continue)


def forward(A, B, N):
    one = found_around("one")
    return add(A, B, 0 if one is not None and one in early else 2_000_000)
