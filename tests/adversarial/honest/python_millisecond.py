# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to work a millisecond in many small operations.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(input, N, C):
    rows, out = input.view(N, C), torch.empty(N, C)
    for row in range(N):
        torch.softmax(rows[row], 0, out=out[row])
    return out.view(input.shape)
