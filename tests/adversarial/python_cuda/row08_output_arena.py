# row: 8
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: wrote out of bounds
# tries: to write over all of the memory that the supervisor reads outputs from, where a reference
#   may lie.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.inside import module, runner


def forward(A, B, N):
    if module("gpu_runner.engine.runner.runner"):
        runner()._arenas.outputs._memory.fill_(1)
    return A + B
