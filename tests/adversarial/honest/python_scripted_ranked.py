# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to be a scripted function that torch specialises in its first calls.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


@torch.jit.script
def softmax(rows: torch.Tensor) -> torch.Tensor:
    shifted = torch.exp(rows - torch.amax(rows, [1], keepdim=True))
    return shifted / shifted.sum(1, keepdim=True)


def forward(input, N, C):
    return softmax(input.view(N, C)).view(input.shape)
