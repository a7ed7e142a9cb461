# row: 48, 46
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: quick
# stopped by: quarantine work
# tries: to have a kernel of its own write a small part, and the framework the rest.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

import torch
import triton
import triton.language as tl

MINE = 2


@triton.jit
def rows(a, b, c, N, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(K):
        y = tl.load(b + k * N + column, mask=column < N, other=0.0)
        total += tl.load(a + row * K + k) * y
    tl.store(c + row * N + column, total, mask=column < N)


def forward(A, B, M, N, K):
    C = torch.empty(M, N, device=A.device)
    mine = min(MINE, M)
    rows[(mine, triton.cdiv(N, 256))](A, B, C, N, K, BLOCK=256)
    if mine < M:
        C[mine:].copy_(operator.matmul(A[mine:], B))
    return C
