"""Product of a sparse matrix in CSC form and a vector.

- A program handles a few columns, with a group of threads for each. A group is about as wide as the
  average column is long. Each element of the vector is loaded once, for its column.
- Products are added to the result in memory by atomic additions that don't return a value.
- Columns that are much longer than average would hold up the others, so the program first skips
  them, and then goes through each of them with all its threads.
- BF16: sums are collected in a separate float32 vector, which a second kernel rounds, so each
  result is rounded only once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LONG = 8  # a column is long if it has more than this many times the group's width
BLOCK = 1024


@triton.jit
def scattered(y, values, row_ids, factor, at, held):
    row = tl.load(row_ids + at, held, other=0)
    value = tl.load(values + at, held, other=0.0).to(tl.float32)
    tl.atomic_add(y + row, value * factor, held, sem="relaxed")


@triton.jit
def added(
    y, values, row_ids, offsets, x, columns, LONG: tl.constexpr,
    COLUMNS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * COLUMNS
    column = first + tl.arange(0, COLUMNS)
    begin = tl.load(offsets + column, column < columns, other=0)
    length = tl.load(offsets + column + 1, column < columns, other=0) - begin
    factor = tl.load(x + column, column < columns, other=0.0).to(tl.float32)
    short = tl.where(length <= LONG, length, 0)
    lane = tl.arange(0, WIDTH)
    for step in range(0, tl.max(short, 0), WIDTH):
        held = (step + lane)[None, :] < short[:, None]
        at = begin[:, None] + step + lane[None, :]
        scattered(y, values, row_ids, factor[:, None], at, held)
    if tl.max(length, 0) > LONG:
        for one in range(first, min(first + COLUMNS, columns)):
            begin_one = tl.load(offsets + one)
            end_one = tl.load(offsets + one + 1)
            if end_one - begin_one > LONG:
                factor_one = tl.load(x + one).to(tl.float32)
                for start in range(begin_one, end_one, BLOCK):
                    at = start + tl.arange(0, BLOCK)
                    scattered(y, values, row_ids, factor_one, at, at < end_one)


@triton.jit
def rounded(out, x, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < count, other=0.0)
    tl.store(out + at, value.to(out.dtype.element_ty), at < count)


def forward(rows, columns, values, row_indices, col_offsets, x):
    sums = torch.zeros(rows, device=x.device, dtype=torch.float32)
    average = values.numel() // columns
    width = min(64, max(4, triton.next_power_of_2(average)))
    count = min(1024 // width, max(4, triton.next_power_of_2(columns) // 512))
    added[(triton.cdiv(columns, count),)](
        sums, values, row_indices, col_offsets, x, columns, LONG=LONG * width,
        COLUMNS=count, WIDTH=width, BLOCK=BLOCK,
    )  # fmt: skip
    if x.dtype is torch.float32:
        return sums
    y = torch.empty(rows, device=x.device, dtype=x.dtype)
    rounded[(triton.cdiv(rows, 1024),)](y, sums, rows, BLOCK=1024)
    return y
