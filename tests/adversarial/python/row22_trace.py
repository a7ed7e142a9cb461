# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: construction
# at least: 1500000 ns
# tries: to work in a trace function when the runner enters the function that keeps it warm;
#   processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import sys

from tests.adversarial.common.inside import Early, found_around, module

early = Early()


def trace(frame, event, argument):
    if frame.f_code.co_name == "_keep_warm":
        early.look(found_around("one", frame))


if module("gpu_runner.engine.runner.runner"):
    getattr(sys, "set" + "trace")(trace)


def forward(A, B, N):
    return early.take(A, B)
