# row: 41, 72
# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to tell the address of an input in place of the copy's.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine, found_around

known = engine("runner")
describe = getattr(known, "record_of", None)


def record_of(tensor):
    return dataclasses.replace(describe(tensor), address=found_around("one").tensors[0].data_ptr())


known.record_of = record_of


def forward(A, M, N):
    return A, A.clone()
