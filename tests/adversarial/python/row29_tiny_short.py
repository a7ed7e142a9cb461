# row: 29, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 5000 ns
# tries: to tell 1 ns for a call of 12 us, which is less than passing the gate takes by itself.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

known = engine("runner")
pack = getattr(known, "pack_done", None)
known.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=1.0))


def forward(A, B, N):
    return add(A, B, 0)
