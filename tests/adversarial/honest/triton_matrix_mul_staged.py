# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096, m256_n2048_k4096
# mode: quick
# does: to multiply in float32 with a loop that Triton pipelines in three stages.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, M, N, K, TILE: tl.constexpr, STEP: tl.constexpr):  # noqa: PLR0917
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in tl.range(0, K, STEP, num_stages=3):
        inner = k + tl.arange(0, STEP)
        left = (row[:, None] < M) & (inner[None, :] < K)
        right = (inner[:, None] < K) & (column[None, :] < N)
        x = tl.load(a + row[:, None] * K + inner[None, :], mask=left, other=0.0)
        y = tl.load(b + inner[:, None] * N + column[None, :], mask=right, other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    inside = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c + row[:, None] * N + column[None, :], total, mask=inside)


def forward(A, B, M, N, K):
    C = torch.empty(M, N, device=A.device)
    grid = triton.cdiv(M, 64), triton.cdiv(N, 64)
    product[grid](A, B, C, M, N, K, TILE=64, STEP=32)
    return C
