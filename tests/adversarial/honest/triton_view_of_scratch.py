# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to return the beginning of a large buffer that it keeps.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

kept = []


def forward(A, B, N):
    if not kept or kept[0].numel() < N:
        kept[:] = [torch.empty(max(N, 1 << 20), device=A.device)]
    return triton_add(A, B, kept[0][:N])
