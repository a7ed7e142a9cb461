# row: 19, 21
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE
# tries: to return a list of its own class, whose items do the work when they are read.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


class Late(list):
    def __iter__(self):
        return iter([torch.add(*self[0])])


def forward(A, B, N):
    return Late([(A, B)])
