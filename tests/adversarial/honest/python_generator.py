# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to take its rows from a generator, block by block.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def blocks(rows, size):
    for first in range(0, len(rows), size):
        yield first, rows[first : first + size]


def forward(input, N, C):
    out = torch.empty(N, C)
    for first, block in blocks(input.view(N, C), 8):
        torch.softmax(block, 1, out=out[first : first + len(block)])
    return out.view(input.shape)
