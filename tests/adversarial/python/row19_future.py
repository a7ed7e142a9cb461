# row: 19
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: not a tensor
# tries: to return a future in place of a tensor.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    future = torch.futures.Future()
    future.set_result(A + B)
    return future
