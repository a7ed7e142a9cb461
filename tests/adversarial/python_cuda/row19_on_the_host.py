# row: 19, 72
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: on cpu
# tries: to return a tensor of the host's memory, to which the device still copies.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    out = torch.empty(N, pin_memory=True)
    return out.copy_(A + B, non_blocking=True)
