# row: 29
# device: cuda
# task: vector_add
# workloads: n16777216
# mode: quick
# libraries: allowed
# stopped by: verdict VIOLATION: the device needs at least
# tries: to tell the smallest time that the protocol allows, where no outside clock looks.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine

known = engine("runner")
pack = getattr(known, "pack_done", None)
known.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=1.0))


def forward(A, B, N):
    return A + B
