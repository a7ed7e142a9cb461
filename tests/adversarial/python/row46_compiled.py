# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have the framework's compiler call the framework's product.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


@torch.compile
def product(a, b):
    return a @ b


def forward(A, B, M, N, K):
    return product(A, B)
