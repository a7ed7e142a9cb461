# device: cuda
# task: vector_add
# workloads: n16777216
# mode: ranked
# does: to work on a stream of its own, between a fork and a join.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

side = []


def forward(A, B, N):
    if not side:
        side.append(torch.cuda.Stream())
    current, out = torch.cuda.current_stream(), torch.empty_like(A)
    side[0].wait_stream(current)
    with torch.cuda.stream(side[0]):
        triton_add(A, B, out)
    current.wait_stream(side[0])
    return out
