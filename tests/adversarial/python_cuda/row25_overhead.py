# row: 25, 24
# device: cuda
# task: vector_add
# workloads: n16777216
# mode: quick
# libraries: allowed
# stopped by: verdict VIOLATION: the device needs at least
# tries: to have the runner's clock subtract a second of overhead, where no outside clock looks.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import module, runner


def forward(A, B, N):
    if module("gpu_runner.engine.runner.runner"):
        runner()._clock.overhead_ns = 1e9
    return A + B
