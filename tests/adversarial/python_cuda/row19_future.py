# row: 19
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: not a tensor
# tries: to return a future of the device's in place of a tensor.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    future = torch.futures.Future(devices=[A.device])
    future.set_result(A + B)
    return future
