"""Mean cross entropy over samples for FP32 and BF16, with one pass over the logits.

- A row of up to 8192 classes stays in the registers of one program, and several short rows share a
  program. A longer row is processed in blocks: each position of the block keeps its own running
  maximum and sum of exponentials, so threads exchange nothing until the end.
- One kernel writes the loss of each sample, and a second kernel with a single program averages
  them. Unlike atomics, this is deterministic and needs no zeroed output.
- Exponentials, logarithms and sums are float32, even for BF16 logits.
- The largest logit is subtracted first, so the exponentials can't overflow, and they can't all
  underflow to zero.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)
WHOLE = 8192  # the longest row that a program holds in registers


@triton.jit
def short_rows(
    out, x, targets, rows, size, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The losses of a few rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * size + column[None, :]
    held = (row[:, None] < rows) & (column[None, :] < size)
    target = tl.load(targets + row, row < rows, other=0)
    value = tl.load(x + at, held, other=-float("inf")).to(tl.float32)
    value = tl.where(row[:, None] < rows, value, 0.0)
    largest = tl.max(value, 1)
    power = tl.exp2((value - largest[:, None]) * LOG2_E)
    total = tl.sum(power, 1)
    own = tl.load(x + row * size + target, row < rows, other=0.0).to(tl.float32)
    tl.store(out + row, tl.log2(total) * LN_2 + (largest - own), row < rows)


@triton.jit
def long_rows(out, x, targets, size, BLOCK: tl.constexpr):
    """The loss of one long row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x += row * size
    largest = tl.full((BLOCK,), -1.0e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, size, BLOCK):
        value = tl.load(x + first + at, first + at < size, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, value)
        sums = sums * tl.exp2((largest - new) * LOG2_E) + tl.exp2((value - new) * LOG2_E)
        largest = new
    top = tl.max(largest, 0)
    total = tl.sum(sums * tl.exp2((largest - top) * LOG2_E), 0)
    target = tl.load(targets + row)
    own = tl.load(x + target).to(tl.float32)
    tl.store(out + row, tl.log2(total) * LN_2 + (top - own))


@triton.jit
def mean(out, losses, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, count, BLOCK):
        total += tl.load(losses + first + at, first + at < count, other=0.0)
    tl.store(out, tl.sum(total, 0) / count)


def forward(logits, true_labels, N, C):
    losses = torch.empty(N, device=logits.device)
    if C > WHOLE:
        long_rows[(N,)](losses, logits, true_labels, C, BLOCK=4096, num_warps=8)
    else:
        block = triton.next_power_of_2(C)
        count = min(max(1, 1024 // block), triton.next_power_of_2(triton.cdiv(N, 128)))
        short_rows[(triton.cdiv(N, count),)](
            losses, logits, true_labels, N, C, ROWS=count, BLOCK=block,
            num_warps=min(8, max(1, count * block // 512)),
        )  # fmt: skip
    out = torch.empty(1, device=logits.device)
    mean[(1,)](out, losses, N, BLOCK=min(4096, triton.next_power_of_2(N)), num_warps=8)
    return out
