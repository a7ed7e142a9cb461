# row: 72, 53, 3
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_SHAPE
# tries: to tell that its output has no bytes, so that an older one is verified.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine

known = engine("runner")
describe = getattr(known, "record_of", None)


def record_of(tensor):
    return dataclasses.replace(describe(tensor), nbytes=0)


known.record_of = record_of


def forward(A, B, N):
    return A + B
