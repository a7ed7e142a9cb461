# row: 48, 46
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: ranked
# stopped by: quarantine work
# tries: to have a kernel of its own write a small part, and the framework the rest.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

import torch

from tests.adversarial.common.triton_matmul import triton_matmul

MINE = 2


def forward(A, B, M, N, K):
    mine = min(MINE, M)
    C = triton_matmul(A, B, torch.empty(M, N, device=A.device), mine)
    if mine < M:
        C[mine:].copy_(operator.matmul(A[mine:], B))
    return C
