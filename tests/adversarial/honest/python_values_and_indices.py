# task: top_k
# workloads: cpu_n1024_k32
# mode: test
# libraries: allowed
# does: to return values and indices, which have dtypes of their own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(input, N, k):
    values, indices = torch.sort(input, descending=True, stable=True)
    return values[:k], indices[:k].to(torch.int32)
