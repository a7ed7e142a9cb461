# row: 29
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to tell the smallest time that the protocol allows; the gate sees more.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

known = engine("runner")
pack = getattr(known, "pack_done", None)
known.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=1.0))


def forward(A, B, N):
    return add(A, B)
