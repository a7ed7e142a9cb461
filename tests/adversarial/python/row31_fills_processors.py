# row: 31, 24
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to spin in eight threads while it works, so that the supervisor's clock has no processor,
#   and to tell 2 us.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread
import os
import time

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import engine

engine("clock").CpuClock.net_ns = lambda self, time_ns: 2000.0
working = [False]


def spin():
    os.sched_setaffinity(0, range(os.cpu_count()))
    while True:
        busy(50_000 if working[0] else 1000)
        if not working[0]:
            time.sleep(0.01)


for _ in range(8):
    _thread.start_new_thread(spin, ())


def forward(A, B, N):
    working[0] = True
    out = add(A, B)
    working[0] = False
    return out
