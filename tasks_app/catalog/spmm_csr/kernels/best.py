"""Product of a sparse matrix in CSR form and a dense matrix, without atomics.

- A program computes part of a row of the result, up to 512 columns wide. It loads a few elements at
  a time, with the matching parts of the dense rows, so several independent loads are in flight.
  Programs that run at the same time share columns of the dense matrix in the L2 cache.
- A row of more than 512 elements would keep one program busy after the others are done. A first
  kernel therefore cuts the elements into chunks of 512. For each long row in a chunk, it writes a
  partial sum to a buffer, and the row's program adds these up. A chunk overlaps at most two long
  rows: those of its first and its last element.
- Sums are float32, even for BF16, and deterministic.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

WIDEST = 512
TILE = 2048  # elements of the dense matrix that a step loads
CHUNK = 512  # elements; longer rows are split


@triton.jit
def sums(values, columns, x, begin, end, k, K, EACH: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of the elements from `begin` to `end`, each times the dense row of its column."""
    place = tl.arange(0, EACH)
    total = tl.zeros((EACH, BLOCK), dtype=tl.float32)
    for first in range(begin, end, EACH):
        at = first + place
        column = tl.load(columns + at, at < end, other=0).to(tl.int64)
        value = tl.load(values + at, at < end, other=0.0).to(tl.float32)
        held = (at < end)[:, None] & (k < K)[None, :]
        found = tl.load(x + column[:, None] * K + k[None, :], held, other=0.0)
        total += value[:, None] * found.to(tl.float32)
    return tl.sum(total, 0)


@triton.jit
def row_of(offsets, rows, element):
    """The row that an element is in: the last one that begins at or before it."""
    low = element * 0
    high = low + rows
    while high - low > 1:
        middle = (low + high) // 2
        is_low = tl.load(offsets + middle) <= element
        low = tl.where(is_low, middle, low)
        high = tl.where(is_low, high, middle)
    return low


@triton.jit
def chunks(
    parts, values, columns, offsets, x, rows, nnz, K,
    CHUNK: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    first = chunk * CHUNK
    last = min(first + CHUNK, nnz) - 1
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = parts + chunk.to(tl.int64) * 2 * K + k
    row = row_of(offsets, rows, first)
    begin = tl.load(offsets + row)
    end = tl.load(offsets + row + 1)
    if end - begin > CHUNK:
        part = sums(values, columns, x, first, min(end, last + 1), k, K, EACH, BLOCK)
        tl.store(place, part, k < K)
    if end <= last:
        row = row_of(offsets, rows, last)
        begin = tl.load(offsets + row)
        end = tl.load(offsets + row + 1)
        if end - begin > CHUNK:
            part = sums(values, columns, x, begin, last + 1, k, K, EACH, BLOCK)
            tl.store(place + K, part, k < K)


@triton.jit
def multiplied(
    y, values, columns, offsets, x, parts, K,
    CHUNK: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    begin = tl.load(offsets + row)
    end = tl.load(offsets + row + 1)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if end - begin <= CHUNK:
        total = sums(values, columns, x, begin, end, k, K, EACH, BLOCK)
        tl.store(y + row * K + k, total.to(y.dtype.element_ty), k < K)
    else:
        long = tl.zeros((BLOCK,), dtype=tl.float32)
        for chunk in range(begin // CHUNK, (end - 1) // CHUNK + 1):
            second = tl.where(chunk * CHUNK < begin, 1, 0)
            at = (tl.cast(chunk, tl.int64) * 2 + second) * K
            long += tl.load(parts + at + k, k < K, other=0.0)
        tl.store(y + row * K + k, long.to(y.dtype.element_ty), k < K)


def forward(rows, K, values, col_indices, row_offsets, X):
    y = torch.empty(rows, K, device=X.device, dtype=X.dtype)
    block = min(WIDEST, max(16, triton.next_power_of_2(K)))
    each = min(32, TILE // block)
    wide, nnz = triton.cdiv(K, block), values.numel()
    parts = y
    if nnz > CHUNK:
        count = triton.cdiv(nnz, CHUNK)
        parts = torch.empty(count, 2, K, device=X.device, dtype=torch.float32)
        chunks[(count, wide)](
            parts, values, col_indices, row_offsets, X, rows, nnz, K,
            CHUNK=CHUNK, EACH=each, BLOCK=block,
        )  # fmt: skip
    multiplied[(rows, wide)](
        y, values, col_indices, row_offsets, X, parts, K, CHUNK=CHUNK, EACH=each, BLOCK=block
    )
    return y
