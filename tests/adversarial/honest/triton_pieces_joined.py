# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to compute in pieces, and to put them together by torch.cat.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add


def forward(A, B, N):
    pieces = [triton_add(a, b) for a, b in zip(A.chunk(3), B.chunk(3), strict=True)]
    return torch.cat(pieces)
