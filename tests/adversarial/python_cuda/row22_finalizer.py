# row: 22
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to work in the finalizer of the last call's garbage, before the inputs of a call are there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import found_around

kept = {}


class Garbage:
    def __del__(self):
        coming = found_around("one")
        if coming is not None and hasattr(coming, "tensors"):
            A, B = coming.tensors
            kept["out"] = A + B


def forward(A, B, N):
    out = kept.pop("out") if kept else A + B
    garbage = Garbage()
    garbage.itself = garbage
    return out
