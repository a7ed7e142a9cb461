# row: 45
# device: cuda
# needs: cupy
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: quick
# stopped by: quarantine work
# stopped by: quarantine source
# tries: to have another package multiply, which calls the vendor's library.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import cupy
import torch


def forward(A, B, M, N, K):
    return torch.as_tensor(cupy.matmul(cupy.asarray(A), cupy.asarray(B)), device=A.device)
