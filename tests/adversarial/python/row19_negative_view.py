# row: 19
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: lazily negated
# tries: to return a tensor that is negated when somebody reads it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B, N):
    return torch._neg_view(torch.sub(A.neg(), B))
