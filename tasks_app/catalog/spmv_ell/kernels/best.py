"""Product of a sparse matrix in ELLPACK form and a vector.

- A program handles a tile of rows and slots. It reads the column of every slot, but values and the
  vector only for slots that hold an element.
- The tile is as wide as a row, up to a limit, so that neighboring threads read neighboring slots;
  longer rows are read in several steps. The number of rows follows from the width, so that each
  program has enough loads in flight.
- Sums are float32, even for BF16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

WIDEST = 256
TILE = 2048  # slots of a tile
ENOUGH = 256  # programs


@triton.jit
def multiplied(
    y, values, columns, x, rows, slots,
    STEPS: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for step in range(STEPS):
        slot = step * WIDTH + tl.arange(0, WIDTH)
        at = row[:, None] * slots + slot[None, :]
        inside = (row[:, None] < rows) & (slot[None, :] < slots)
        column = tl.load(columns + at, inside, other=-1)
        held = column >= 0
        value = tl.load(values + at, held, other=0.0).to(tl.float32)
        total += value * tl.load(x + column, held, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(total, 1).to(y.dtype.element_ty), row < rows)


def forward(rows, max_nnz_per_row, values, col_ids, x):
    y = torch.empty(rows, device=x.device, dtype=x.dtype)
    width = min(WIDEST, max(4, triton.next_power_of_2(max_nnz_per_row)))
    count = TILE // width
    while count > 2 and triton.cdiv(rows, count) < ENOUGH:
        count //= 2
    multiplied[(triton.cdiv(rows, count),)](
        y, values, col_ids, x, rows, max_nnz_per_row,
        STEPS=triton.cdiv(max_nnz_per_row, width), ROWS=count, WIDTH=width,
    )  # fmt: skip
    return y
