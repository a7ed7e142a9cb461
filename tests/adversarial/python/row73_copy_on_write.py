# row: 73, 41, 19
# task: matrix_copy
# libraries: allowed
# stopped by: verdict RUNTIME_ERROR
# tries: to return a copy that the framework makes only when somebody asks for its address.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, B=None, *sizes):
    return torch._lazy_clone(A)
