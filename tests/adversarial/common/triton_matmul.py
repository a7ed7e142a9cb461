"""A product in Triton, for modules that need an honest kernel beside what they try."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

STEP = tl.constexpr(128)


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


def triton_matmul(A, B, C, count):
    """Write so many rows of A @ B to C."""
    N, K = B.shape[1], B.shape[0]
    rows[(count, triton.cdiv(N, 32))](A, B, C, N, K, BLOCK=32)
    return C


def product(A, B):
    return triton_matmul(A, B, torch.empty(A.shape[0], B.shape[1], device=A.device), A.shape[0])
