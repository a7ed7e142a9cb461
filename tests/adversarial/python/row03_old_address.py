# row: 3, 72
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to tell the address of an older output for a new call.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine

known, old = engine("runner"), []
describe = getattr(known, "record_of", None)


def record_of(tensor):
    old.append((tensor, describe(tensor)))
    return dataclasses.replace(describe(tensor), address=old[0][1].address)


known.record_of = record_of


def forward(A, B, N):
    return A + B
