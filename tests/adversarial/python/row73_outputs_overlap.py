# row: 73, 41
# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: same memory
# tries: to return two tensors of one buffer that share an element.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(A, M, N):
    memory = torch.empty(2 * M * N - 1)
    first, second = memory[: M * N].view(M, N), memory[M * N - 1 :].view(M, N)
    first.copy_(A)
    second.copy_(A)
    return first, second
