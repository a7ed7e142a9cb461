# row: 22
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to work in a callback of the garbage collector, which runs before a call; its inputs are
#   not there yet.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import found_around, module

kept, collector = {}, module("gc")


def early(phase, facts):
    coming = found_around("one")
    if phase == "start" and coming is not None and hasattr(coming, "tensors"):
        A, B = coming.tensors
        kept["out"] = A + B


if module("gpu_runner.engine.runner.runner"):
    collector.callbacks.append(early)


def forward(A, B, N):
    return kept.pop("out") if kept else A + B
