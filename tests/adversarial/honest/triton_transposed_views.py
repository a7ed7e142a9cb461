# device: cuda
# task: matrix_transpose
# workloads: m8192_n8192
# mode: ranked
# does: to read its input by the strides of a transposed view, tile by tile.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def copy_tile(out, x, rows, columns, down, right, TILE: tl.constexpr):  # noqa: PLR0917
    row = (tl.program_id(0) * TILE + tl.arange(0, TILE)).to(tl.int64)
    column = (tl.program_id(1) * TILE + tl.arange(0, TILE)).to(tl.int64)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    value = tl.load(x + row[:, None] * down + column[None, :] * right, mask=inside)
    tl.store(out + row[:, None] * columns + column[None, :], value, mask=inside)


def forward(A, M, N):
    turned = A.view(M, N).t()
    out = torch.empty(N, M, dtype=A.dtype, device=A.device)
    grid = triton.cdiv(N, 64), triton.cdiv(M, 64)
    copy_tile[grid](out, turned, N, M, *turned.stride(), TILE=64)
    return out
