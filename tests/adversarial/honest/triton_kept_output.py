# device: cuda
# task: vector_add
# workloads: n65536
# mode: ranked
# does: to write into the same output in each call, as what replays a CUDA graph does.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

outputs = {}


def forward(A, B, N):
    if N not in outputs:
        outputs[N] = torch.empty_like(A)
    return triton_add(A, B, outputs[N])
