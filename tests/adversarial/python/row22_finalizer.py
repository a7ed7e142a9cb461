# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR: read inputs out of bounds, or outside of the call
# at least: 1500000 ns
# tries: to work in the finalizer of the last call's garbage, before the inputs of a call are there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import found_around, module

kept, weak = {}, module("weakref")


class Garbage:
    def __del__(self):
        coming = found_around("one")
        if coming is not None:
            kept["out"] = add(*coming.tensors[:2])


def forward(A, B, N):
    out = kept.pop("out") if kept else add(A, B)
    garbage = Garbage()
    garbage.itself = garbage
    return out
