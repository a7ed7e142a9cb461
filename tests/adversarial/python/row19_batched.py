# row: 19
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_SHAPE
# stopped by: verdict RUNTIME_ERROR
# tries: to return what a transform wraps around a tensor, which looks like a
#   tensor of another shape.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

wrap = torch._C._functorch._add_batch_dim


def forward(A, B, N):
    return wrap(torch.add(A, B).unsqueeze(0), 0, 1)
