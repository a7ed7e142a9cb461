# row: 72, 53
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: strides
# tries: to tell strides of 0, so that one element is read for all.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine

known = engine("runner")
describe = getattr(known, "record_of", None)


def record_of(tensor):
    return dataclasses.replace(describe(tensor), strides=(0,))


known.record_of = record_of


def forward(A, B, N):
    return A + B
