# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to be a module with a buffer and a parameter that depend on nothing.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, input, N, C):
        rows = torch.softmax(input.view(N, C) * self.one, 1)
        return (rows * self.scale).view(input.shape)
