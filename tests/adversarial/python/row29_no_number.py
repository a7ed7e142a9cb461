# row: 29
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: a time of nan
# tries: to tell a time that is no number.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

known = engine("runner")
pack = getattr(known, "pack_done", None)
known.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=float("nan")))


def forward(A, B, N):
    return add(A, B)
