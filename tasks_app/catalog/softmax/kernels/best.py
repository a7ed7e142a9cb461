"""Row softmax that reads each row from memory only once.

- A row of up to 16384 elements stays in the registers of one program, which computes the maximum
  and the sum and writes the result. If the row length is a multiple of 16, the mask doesn't prevent
  16-byte loads and stores.
- If there are many short rows, several share a program, so that each program has enough to load.
- A longer row is split. In the first kernel, each program computes the maximum and the sum of
  exponentials of one part. In the second kernel, each program combines the results of all parts and
  writes one part. Parts are read twice, the second time mostly from the L2 cache, and even a single
  row keeps the whole GPU busy.
- Exponentials and sums are float32, even for BF16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
WHOLE = 16384  # the longest row that a program holds in registers
PART = 8192


@triton.jit
def rows(out, x, N, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * C + column[None, :]
    held = (row[:, None] < N) & (column[None, :] < C)
    value = tl.load(x + at, held, other=-float("inf")).to(tl.float32)
    largest = tl.max(value, 1)
    # Rows past the end would compute -inf minus -inf.
    largest = tl.where(row < N, largest, 0.0)
    power = tl.exp2((value - largest[:, None]) * LOG2_E)
    total = tl.where(row < N, tl.sum(power, 1), 1.0)
    result = power * (1.0 / total)[:, None]
    tl.store(out + at, result.to(out.dtype.element_ty), held)


@triton.jit
def statistics(found, x, C, parts, BLOCK: tl.constexpr):
    """The largest element of a part of a row, and the sum of the exponentials relative to it."""
    part, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = part * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + row * C + column, column < C, other=-float("inf")).to(tl.float32)
    largest = tl.max(value, 0)
    place = found + (row * parts + part) * 2
    tl.store(place, largest)
    tl.store(place + 1, tl.sum(tl.exp2((value - largest) * LOG2_E), 0))


@triton.jit
def scaled(out, x, found, C, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    every = tl.arange(0, PARTS)
    place = found + (row * parts + every) * 2
    largest = tl.load(place, every < parts, other=-float("inf"))
    sums = tl.load(place + 1, every < parts, other=0.0)
    top = tl.max(largest, 0)
    total = tl.sum(sums * tl.exp2((largest - top) * LOG2_E), 0)
    column = part * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + row * C + column, column < C, other=0.0).to(tl.float32)
    result = tl.exp2((value - top) * LOG2_E) * (1.0 / total)
    tl.store(out + row * C + column, result.to(out.dtype.element_ty), column < C)


def forward(input, N, C):
    out = torch.empty_like(input)
    if C <= WHOLE:
        block = triton.next_power_of_2(C)
        count = max(1, 1024 // block) if N > 1024 else 1
        warps = min(16, max(1, count * block // 512))
        rows[(triton.cdiv(N, count),)](out, input, N, C, ROWS=count, BLOCK=block, num_warps=warps)
        return out
    parts = triton.cdiv(C, PART)
    found = torch.empty(N, parts, 2, device=input.device)
    statistics[(parts, N)](found, input, C, parts, BLOCK=PART, num_warps=8)
    scaled[(parts, N)](
        out, input, found, C, parts, PARTS=triton.next_power_of_2(parts), BLOCK=PART, num_warps=8
    )
    return out
