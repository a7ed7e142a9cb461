# row: 2, 72
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to tell the address of the runner's own noise.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine, found_around

known = engine("runner")
describe = getattr(known, "record_of", None)


def record_of(tensor):
    return dataclasses.replace(
        describe(tensor), address=found_around("self")._poison._tile.data_ptr()
    )


known.record_of = record_of


def forward(A, B, N):
    return A + B
