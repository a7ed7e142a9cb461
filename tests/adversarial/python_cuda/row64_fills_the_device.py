# row: 64
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: construction
# stopped by: verdict MEMORY_LIMIT
# tries: to take all memory of the device in ever smaller pieces and to keep it, so that nobody else
#   can measure.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

kept = []


def fill(device):
    size = 1 << 36
    while size >= 1 << 21:
        try:
            kept.append(torch.empty(size, dtype=torch.uint8, device=device))
        except torch.OutOfMemoryError:
            size //= 2


def forward(A, B, N):
    out = A + B
    if not kept:
        fill(A.device)
    return out
