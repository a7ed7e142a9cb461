"""Cross entropy over a large vocabulary, forward and backward, for FP32 and BF16.

- Forward: each program makes one pass over a token's logits. Each position of the block keeps its
  own running maximum and sum of exponentials, so threads exchange nothing until the end. The logits
  of ignored tokens are not read.
- Backward: a program computes the maximum and the sum in the same way, then reads the logits again,
  mostly from the L2 cache, and writes the gradient. Ignored tokens get zeros without being read.
- The loop that finds the maximum and the sum needs a mask only for its last block.
- Exponentials and sums are float32, even for BF16 logits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)
LOW = tl.constexpr(-1.0e38)


@triton.jit
def logsumexp(x, C, BLOCK: tl.constexpr):
    """The largest logit, and the sum of exponentials relative to it."""
    at = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), LOW, dtype=tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    whole = C // BLOCK * BLOCK
    for first in range(0, whole, BLOCK):
        value = tl.load(x + first + at).to(tl.float32)
        new = tl.maximum(largest, value)
        sums = sums * tl.exp2((largest - new) * LOG2_E) + tl.exp2((value - new) * LOG2_E)
        largest = new
    value = tl.load(x + whole + at, whole + at < C, other=-float("inf")).to(tl.float32)
    new = tl.maximum(largest, value)
    sums = sums * tl.exp2((largest - new) * LOG2_E) + tl.exp2((value - new) * LOG2_E)
    top = tl.max(new, 0)
    return top, tl.sum(sums * tl.exp2((new - top) * LOG2_E), 0)


@triton.jit
def losses(out, logits, targets, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    loss = 0.0
    if target >= 0:
        top, total = logsumexp(logits + row * C, C, BLOCK)
        own = tl.load(logits + row * C + target).to(tl.float32)
        loss = tl.log2(total) * LN_2 + (top - own)
    tl.store(out + row, loss)


@triton.jit
def gradients(out, grad, logits, targets, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    at = tl.arange(0, BLOCK)
    result = out + row * C
    if target >= 0:
        x = logits + row * C
        top, total = logsumexp(x, C, BLOCK)
        factor = tl.load(grad + row).to(tl.float32)
        share = factor / total
        for first in range(0, C, BLOCK):
            column = first + at
            value = tl.load(x + column, column < C, other=0.0).to(tl.float32)
            power = tl.exp2((value - top) * LOG2_E)
            change = tl.where(column == target, (power - total) * share, power * share)
            tl.store(result + column, change.to(out.dtype.element_ty), column < C)
    else:
        zero = tl.zeros((BLOCK,), dtype=out.dtype.element_ty)
        for first in range(0, C, BLOCK):
            tl.store(result + first + at, zero, first + at < C)


def forward(logits, targets):
    tokens, classes = logits.shape
    out = torch.empty(tokens, device=logits.device)
    losses[(tokens,)](out, logits, targets, classes, BLOCK=4096, num_warps=8)
    return out


def backward(grad_output, logits, targets):
    tokens, classes = logits.shape
    out = torch.empty_like(logits)
    gradients[(tokens,)](out, grad_output, logits, targets, classes, BLOCK=4096, num_warps=8)
    return (out,)
