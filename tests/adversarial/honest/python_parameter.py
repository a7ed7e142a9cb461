# task: vector_add
# workloads: cpu_n1024
# mode: test
# libraries: allowed
# does: to return a parameter of torch.nn.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from torch import nn


def forward(A, B, N):
    return nn.Parameter(A + B)
