# row: 22, 71
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to have a thread take the interpreter from the runner within a microsecond, and work in its
#   waits; processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread
import sys

from tests.adversarial.common.inside import Early, found_around, module

early, main = Early(), _thread.get_ident()
frames = getattr(sys, "_current" + "_frames")
sys.setswitchinterval(1e-6)


def watch():
    while True:
        frame = frames().get(main)
        early.look(found_around("one", frame) if found_around("meanwhile", frame) else None)


if module("gpu_runner.engine.runner.runner"):
    _thread.start_new_thread(watch, ())


def forward(A, B, N):
    return early.take(A, B)
