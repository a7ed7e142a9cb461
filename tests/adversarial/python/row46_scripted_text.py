# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have a text compiled that calls the framework.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

unit = torch.jit.CompilationUnit("def product(a, b):\n    return a @ b\n")


def forward(A, B, M, N, K):
    return unit.product(A, B)
