# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR: read inputs out of bounds, or outside of the call
# at least: 1500000 ns
# tries: to work in a callback of the garbage collector, which runs before a call; its inputs are
#   not there yet.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import found_around, module

kept, gc = {}, module("gc")


def callback(phase, details):
    coming = found_around("one")
    if coming is not None and phase == "stop":
        kept["out"] = add(*coming.tensors[:2])


if module("gpu_runner.engine.runner.runner"):
    gc.callbacks.append(callback)


def forward(A, B, N):
    return kept.pop("out") if kept else add(A, B)
