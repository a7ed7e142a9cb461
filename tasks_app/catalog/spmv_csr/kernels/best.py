"""Product of a sparse matrix in CSR form and a vector, in one kernel that copes with uneven rows.

- A program handles a few rows, with a group of threads for each. A group is about as wide as the
  average row is long, so most rows are read in one step, and neighboring threads read neighboring
  elements.
- Rows that are much longer than that would hold up the others, so the program first skips them, and
  then goes through each of them with all its threads.
- There are no atomics, so sums are deterministic; they are float32 even for BF16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LONG = 8  # a row is long if it has more than this many times the group's width
BLOCK = 2048
TILE = 256  # elements that a program reads at once; small, so that long rows spread out


@triton.jit
def products(values, columns, x, at, held):
    column = tl.load(columns + at, held, other=0)
    value = tl.load(values + at, held, other=0.0).to(tl.float32)
    return value * tl.load(x + column, held, other=0.0).to(tl.float32)


@triton.jit
def multiplied(
    y, values, columns, offsets, x, rows, LONG: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * ROWS
    row = first + tl.arange(0, ROWS)
    begin = tl.load(offsets + row, row < rows, other=0)
    length = tl.load(offsets + row + 1, row < rows, other=0) - begin
    short = length <= LONG
    lane = tl.arange(0, WIDTH)
    total = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for step in range(0, tl.max(tl.where(short, length, 0), 0), WIDTH):
        held = (step + lane)[None, :] < tl.where(short, length, 0)[:, None]
        at = begin[:, None] + step + lane[None, :]
        total += products(values, columns, x, at, held)
    sums = tl.sum(total, 1)
    tl.store(y + row, sums.to(y.dtype.element_ty), (row < rows) & short)
    if tl.max(length, 0) > LONG:
        for one in range(first, min(first + ROWS, rows)):
            begin_one = tl.load(offsets + one)
            end_one = tl.load(offsets + one + 1)
            if end_one - begin_one > LONG:
                sums_one = tl.zeros((BLOCK,), dtype=tl.float32)
                for start in range(begin_one, end_one, BLOCK):
                    at = start + tl.arange(0, BLOCK)
                    sums_one += products(values, columns, x, at, at < end_one)
                tl.store(y + one, tl.sum(sums_one, 0).to(y.dtype.element_ty))


def forward(rows, values, col_indices, row_offsets, x):
    y = torch.empty(rows, device=x.device, dtype=x.dtype)
    average = values.numel() // rows
    width = min(64, max(4, triton.next_power_of_2(average)))
    count = min(TILE // width, max(4, triton.next_power_of_2(rows) // 512))
    multiplied[(triton.cdiv(rows, count),)](
        y, values, col_indices, row_offsets, x, rows, LONG=LONG * width,
        ROWS=count, WIDTH=width, BLOCK=BLOCK,
    )  # fmt: skip
    return y
