# row: 19, 7
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE
# tries: to return a tensor whose class says that it is one, and whose shape is told by a property.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


class Posing:
    __class__ = torch.Tensor
    shape = torch.Size([16384])
    dtype = torch.float32

    def __init__(self, A, B):
        self.late = A, B

    def detach(self):
        A, B = self.late
        return A + B


def forward(A, B, N):
    return Posing(A, B)
