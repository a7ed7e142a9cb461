"""Matrix-vector product, limited by memory bandwidth.

- Each matrix element is read once, with 16-byte loads if the row length is a multiple of 16. The
  vector stays in the caches. Products and sums are float32, even for BF16.
- Each program handles a few rows and walks over their columns in blocks. Each position of the block
  keeps its own sum, so threads exchange nothing until the end.
- If rows are short, a program takes more of them, so that it has up to 4096 elements to load at
  once.
- A few long rows would leave most multiprocessors idle. Their columns are split over more programs,
  and a second kernel adds up the parts in a fixed order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def product(y, a, x, M, N, steps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inner = tl.arange(0, BLOCK)
    begin = tl.program_id(1) * steps * BLOCK
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(begin, min(begin + steps * BLOCK, N), BLOCK):
        column = first + inner
        held = (row[:, None] < M) & (column[None, :] < N)
        values = tl.load(a + row[:, None] * N + column[None, :], held, other=0.0)
        factors = tl.load(x + column, column < N, other=0.0).to(tl.float32)
        total += values.to(tl.float32) * factors[None, :]
    place = y + tl.program_id(1) * M + row
    tl.store(place, tl.sum(total, 1).to(y.dtype.element_ty), row < M)


@triton.jit
def sum_of_parts(y, parts, M, count, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in range(count):
        total += tl.load(parts + part * M + row, row < M, other=0.0)
    tl.store(y + row, total.to(y.dtype.element_ty), row < M)


def forward(A, x, M, N):
    processors = torch.cuda.get_device_properties(A.device).multi_processor_count
    block = min(2048, triton.next_power_of_2(N))
    rows = max(1, min(4096 // block, triton.next_power_of_2(M)))
    groups = triton.cdiv(M, rows)
    split = max(1, min(triton.cdiv(4 * processors, groups), triton.cdiv(N, 2 * block), 512))
    steps = triton.cdiv(triton.cdiv(N, block), split)
    split = triton.cdiv(N, steps * block)
    y = torch.empty(M, device=A.device, dtype=A.dtype)
    parts = y if split == 1 else torch.empty(split, M, device=A.device)
    product[(groups, split)](parts, A, x, M, N, steps, ROWS=rows, BLOCK=block, num_warps=4)
    if split > 1:
        sum_of_parts[(triton.cdiv(M, 128),)](y, parts, M, split, BLOCK=128)
    return y
