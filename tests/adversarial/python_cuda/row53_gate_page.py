# row: 53, 27
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: before it began
# stopped by: construction
# tries: to write into the page of the gate that calls have begun and are over.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import OPEN, OVER, READY, module, runner, words_of


def forward(A, B, N):
    if module("gpu_runner.engine.runner.runner"):
        words = words_of(runner()._gate)
        words[READY] = words[OPEN] = words[OVER] = 1
    return A + B
