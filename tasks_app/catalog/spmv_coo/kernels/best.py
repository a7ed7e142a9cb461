"""Product of a sparse matrix in coordinate form and a vector, for elements in any order.

- A program takes a block of consecutive elements, and adds up runs from the same row with a
  segmented scan. Only the last element of a run adds to the result in memory. This takes one atomic
  addition for each row and program if the elements come row by row, and one for each element if
  their order is random.
- BF16: sums are collected in a separate float32 vector, which a second kernel rounds, so each
  result is rounded only once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def joined(sum_a, begins_a, sum_b, begins_b):
    return tl.where(begins_b > 0, sum_b, sum_a + sum_b), begins_a | begins_b


@triton.jit
def added(y, values, row_ids, column_ids, x, nnz, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    place = tl.arange(0, BLOCK)
    at = first + place
    held = at < nnz
    row = tl.load(row_ids + at, held, other=-1)
    column = tl.load(column_ids + at, held, other=0)
    value = tl.load(values + at, held, other=0.0).to(tl.float32)
    before = tl.load(row_ids + at - 1, held & (place > 0), other=-1)
    after = tl.load(row_ids + at + 1, (at + 1 < nnz) & (place < BLOCK - 1), other=-1)
    term = value * tl.load(x + column, held, other=0.0).to(tl.float32)
    sums, _ = tl.associative_scan((term, (row != before).to(tl.int32)), 0, joined)
    tl.atomic_add(y + row, sums, held & (row != after), sem="relaxed")


@triton.jit
def rounded(out, x, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < count, other=0.0)
    tl.store(out + at, value.to(out.dtype.element_ty), at < count)


def forward(rows, nnz, values, row_indices, col_indices, x):
    sums = torch.zeros(rows, device=x.device, dtype=torch.float32)
    added[(triton.cdiv(nnz, BLOCK),)](sums, values, row_indices, col_indices, x, nnz, BLOCK=BLOCK)
    if x.dtype is torch.float32:
        return sums
    y = torch.empty(rows, device=x.device, dtype=x.dtype)
    rounded[(triton.cdiv(rows, 1024),)](y, sums, rows, BLOCK=1024)
    return y
