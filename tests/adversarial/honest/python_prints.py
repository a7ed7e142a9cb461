# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to print in each call.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(input, N, C):
    print("softmax of", N, "rows", flush=True)
    return torch.softmax(input.view(N, C), 1).view(input.shape)
