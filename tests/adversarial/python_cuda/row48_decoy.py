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
import triton
import triton.language as tl

MINE, STEP = 2, tl.constexpr(128)


@triton.jit
def rows(a, b, c, N, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((STEP, BLOCK), dtype=tl.float32)
    for start in range(0, K, STEP):
        k = start + tl.arange(0, STEP)
        here = (k < K)[:, None] & (column < N)[None, :]
        y = tl.load(b + k[:, None] * N + column[None, :], mask=here, other=0.0)
        total += tl.load(a + row * K + k, mask=k < K, other=0.0)[:, None] * y
    tl.store(c + row * N + column, tl.sum(total, 0), mask=column < N)


def forward(A, B, M, N, K):
    C = torch.empty(M, N, device=A.device)
    mine = min(MINE, M)
    rows[(mine, triton.cdiv(N, 32))](A, B, C, N, K, BLOCK=32)
    if mine < M:
        C[mine:].copy_(operator.matmul(A[mine:], B))
    return C
