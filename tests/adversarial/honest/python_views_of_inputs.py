# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# does: to slice, reshape and keep views of its inputs, and to return a fresh tensor.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

seen = []


def forward(A, B, N):
    seen[:] = [A.view(2, -1), B[::2], A.detach().unflatten(0, (-1, 4))]
    halves = [x + y for x, y in zip(A.chunk(2), B.chunk(2), strict=True)]
    return torch.cat(halves)
