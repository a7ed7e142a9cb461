# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to keep its output's memory by size, and to return it again and again.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

scratch = {}


def forward(A, B, N):
    if N not in scratch:
        scratch[N] = torch.empty_like(A)
    return triton_add(A, B, scratch[N])
