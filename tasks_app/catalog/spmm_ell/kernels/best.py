"""Product of a sparse matrix in ELLPACK form and a dense matrix.

- A program computes part of a row of the result, up to 512 columns wide. It loads a few slots at a
  time, with the matching parts of the dense rows, so several independent loads are in flight.
- Empty slots load neither a value nor a dense row, wherever they are in a row.
- Programs that run at the same time use the same columns of the dense matrix, so these stay in the
  L2 cache.
- If the dense matrix has few columns, each step takes more slots. Sums are float32, even for BF16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

WIDEST = 512
TILE = 2048  # elements of the dense matrix that a step loads


@triton.jit
def multiplied(y, values, columns, x, slots, K, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.arange(0, SLOTS)
    total = tl.zeros((SLOTS, BLOCK), dtype=tl.float32)
    for first in range(0, slots, SLOTS):
        at = row * slots + first + slot
        column = tl.load(columns + at, first + slot < slots, other=-1).to(tl.int64)
        value = tl.load(values + at, column >= 0, other=0.0).to(tl.float32)
        held = (column[:, None] >= 0) & (k[None, :] < K)
        found = tl.load(x + column[:, None] * K + k[None, :], held, other=0.0)
        total += value[:, None] * found.to(tl.float32)
    tl.store(y + row * K + k, tl.sum(total, 0).to(y.dtype.element_ty), k < K)


def forward(rows, max_nnz_per_row, K, values, col_ids, X):
    y = torch.empty(rows, K, device=X.device, dtype=X.dtype)
    block = min(WIDEST, max(16, triton.next_power_of_2(K)))
    slots = min(32, TILE // block)
    multiplied[(rows, triton.cdiv(K, block))](
        y, values, col_ids, X, max_nnz_per_row, K, SLOTS=slots, BLOCK=block
    )
    return y
