# row: 2
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to return memory as it comes, in the hope that it still holds a right result.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    return torch.empty_like(A)
