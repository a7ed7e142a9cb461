# row: 8, 40
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: changed its input
# tries: to return zeros, and to set all of the inputs' memory to zero, so that a reference computed
#   later agrees.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import module, runner


def forward(A, B, N):
    if module("gpu_runner.engine.runner.runner"):
        runner()._arenas.inputs._memory.zero_()
    return torch.zeros_like(A)
