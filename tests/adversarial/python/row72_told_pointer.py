# row: 72, 26
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_RESULT: wrong
# tries: to have tensors tell the address of an older output, by a method of torch that it replaces.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

kept, address = [], torch.Tensor.data_ptr


def data_ptr(tensor):
    return address(kept[0]) if kept else address(tensor)


def forward(A, B, N):
    torch.Tensor.data_ptr = data_ptr
    kept.append(A + B)
    return torch.empty_like(A)
