# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: construction
# stopped by: verdict WRONG_RESULT: wrong
# at least: 1500000 ns
# tries: to work in a profile function whenever something returns while the runner waits; processor
#   time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import sys

from tests.adversarial.common.inside import Early, found_around, module

early = Early()


def profile(frame, event, argument):
    if event == "return" and frame.f_code.co_name == "_keep_warm":
        early.look(found_around("one", frame))


if module("gpu_runner.engine.runner.runner"):
    getattr(sys, "set" + "profile")(profile)


def forward(A, B, N):
    return early.take(A, B)
