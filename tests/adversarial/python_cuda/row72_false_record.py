# row: 72, 36
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to return half of the bytes and to describe them as all, so that nothing is copied out.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import engine

known = engine("runner")
describe = getattr(known, "record_of", None)
known.record_of = lambda tensor: dataclasses.replace(
    describe(tensor), dtype="float32", nbytes=4 * tensor.numel()
)


def forward(A, B, N):
    return (A + B).half()
