# row: 22, 3
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION: the device needs at least
# tries: to launch the call's work while it stands at the gate, on what the memory of the inputs
#   holds then.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import engine, found_around
from tests.adversarial.common.triton_add import triton_add

kept = {}


def wake(self):
    coming = found_around("one")
    if coming is not None:
        kept["out"] = triton_add(*coming.tensors)


engine("clock").CudaClock.wake = wake


def forward(A, B, N):
    return kept.pop("out") if kept else triton_add(A, B)
