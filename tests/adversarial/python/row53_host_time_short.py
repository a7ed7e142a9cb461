# row: 53, 54
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 30000 ns
# tries: to excuse 45 us of work by its host's time, as a short kernel on a GPU could; on a CPU that
#   is not asked.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

known = engine("runner")
pack = getattr(known, "pack_done", None)
known.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=1000.0, host_ns=10_000_000))


def forward(A, B, N):
    return add(A, B, 45_000)
