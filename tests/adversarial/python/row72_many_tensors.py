# row: 72, 64
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE
# tries: to return more tensors than there is room for on the page of the gate, the asked one last.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    return [*torch.zeros(500, 1).unbind(), A + B]
