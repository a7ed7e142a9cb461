# task: vector_add
# workloads: cpu_n1024
# mode: ranked
# libraries: allowed
# does: to take as little time as a call of torch can.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    return torch.add(A, B)
