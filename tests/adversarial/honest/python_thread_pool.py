# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to share rows among the threads of a pool that it keeps, and to wait for all.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(2)


def forward(input, N, C):
    rows, out = input.view(N, C), torch.empty(N, C)
    parts = list(zip(rows.chunk(4), out.chunk(4), strict=True))
    list(pool.map(lambda part: torch.softmax(part[0], 1, out=part[1]), parts))
    return out.view(input.shape)
