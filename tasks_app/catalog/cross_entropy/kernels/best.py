"""Mean cross entropy, forward and backward, with one pass over rows that fit into registers.

- A row of up to 8192 classes stays in the registers of one program, and several short rows share a
  program. A longer row is processed in blocks: each position of the block keeps its own running
  maximum and sum of exponentials, so threads exchange nothing until the end.
- Forward: one kernel writes the loss of each row, and a second kernel with a single program
  averages them. Unlike atomics, this is deterministic and needs no zeroed output.
- Backward: once a program has the row's maximum and sum, it writes the gradient. A longer row is
  read again for this, mostly from the L2 cache. The gradient of the loss is read on the device, so
  the host never waits for it.
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
    out, grad, x, targets, rows, size, BACKWARD: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """The losses of a few rows, or their gradients."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * size + column[None, :]
    held = (row[:, None] < rows) & (column[None, :] < size)
    target = tl.load(targets + row, row < rows, other=0)
    value = tl.load(x + at, held, other=-float("inf"))
    value = tl.where(row[:, None] < rows, value, 0.0)
    largest = tl.max(value, 1)
    power = tl.exp2((value - largest[:, None]) * LOG2_E)
    total = tl.sum(power, 1)
    if BACKWARD:
        factor = tl.load(grad) / rows / total
        power = tl.where(column[None, :] == target[:, None], power - total[:, None], power)
        tl.store(out + at, power * factor[:, None], held)
    else:
        own = tl.load(x + row * size + target, row < rows, other=0.0)
        tl.store(out + row, tl.log2(total) * LN_2 + (largest - own), row < rows)


@triton.jit
def long_rows(out, grad, x, targets, rows, size, BACKWARD: tl.constexpr, BLOCK: tl.constexpr):
    """The loss of one long row, or its gradient."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    x += row * size
    largest = tl.full((BLOCK,), -1.0e38, dtype=tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, size, BLOCK):
        value = tl.load(x + first + at, first + at < size, other=-float("inf"))
        new = tl.maximum(largest, value)
        sums = sums * tl.exp2((largest - new) * LOG2_E) + tl.exp2((value - new) * LOG2_E)
        largest = new
    top = tl.max(largest, 0)
    total = tl.sum(sums * tl.exp2((largest - top) * LOG2_E), 0)
    target = tl.load(targets + row)
    if BACKWARD:
        factor = tl.load(grad) / rows / total
        for first in range(0, size, BLOCK):
            column = first + at
            value = tl.load(x + column, column < size, other=0.0)
            power = tl.exp2((value - top) * LOG2_E)
            power = tl.where(column == target, power - total, power)
            tl.store(out + row * size + column, power * factor, column < size)
    else:
        tl.store(out + row, tl.log2(total) * LN_2 + (top - tl.load(x + target)))


@triton.jit
def mean(out, losses, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, count, BLOCK):
        total += tl.load(losses + first + at, first + at < count, other=0.0)
    tl.store(out, tl.sum(total, 0) / count)


def launched(out, grad, x, targets, *, backward):
    rows, size = x.shape
    if size > WHOLE:
        long_rows[(rows,)](
            out, grad, x, targets, rows, size, BACKWARD=backward, BLOCK=4096, num_warps=8
        )
        return
    block = triton.next_power_of_2(size)
    count = min(max(1, 1024 // block), triton.next_power_of_2(triton.cdiv(rows, 128)))
    short_rows[(triton.cdiv(rows, count),)](
        out, grad, x, targets, rows, size, BACKWARD=backward, ROWS=count, BLOCK=block,
        num_warps=min(8, max(1, count * block // 512)),
    )  # fmt: skip


def forward(predictions, targets):
    rows = predictions.shape[0]
    losses = torch.empty(rows, device=predictions.device)
    launched(losses, losses, predictions, targets, backward=False)
    out = torch.empty((), device=predictions.device)
    mean[(1,)](out, losses, rows, BLOCK=min(4096, triton.next_power_of_2(rows)), num_warps=8)
    return out


def backward(grad_output, predictions, targets):
    out = torch.empty_like(predictions)
    launched(out, grad_output, predictions, targets, backward=True)
    return (out,)
