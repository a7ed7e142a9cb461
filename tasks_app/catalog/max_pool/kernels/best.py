"""Maximum over windows of 2 x 2, forward and backward.

- A thread handles one window. Windows are numbered across rows and images, so no thread is idle at
  the end of a short row.
- If rows have an even length, the two neighbors in a row are loaded and stored as one 8-byte
  integer and taken apart with shifts. This makes every access contiguous across a warp.
- Backward: one thread reads the window, finds its first maximum, and writes all four gradients, so
  `x` and the gradients are read or written only once. If the height or width is odd, the windows
  past the edge write the zeros of the last row or column.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def loaded(x, at, first, second, PAIRED: tl.constexpr):
    """Two neighbors in a row, the first at `at`; masks say whether they exist."""
    if PAIRED:
        pair = tl.load(x + at // 2, first, other=0)
        a = (pair & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
        b = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    else:
        a = tl.load(x + at, first, other=0.0)
        b = tl.load(x + at + 1, second, other=0.0)
    return a, b


@triton.jit
def stored(out, at, a, b, first, second, PAIRED: tl.constexpr):
    if PAIRED:
        low = a.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
        high = b.to(tl.int32, bitcast=True).to(tl.int64) << 32
        tl.store(out + at // 2, low | high, first)
    else:
        tl.store(out + at, a, first)
        tl.store(out + at + 1, b, second)


@triton.jit
def pooled(out, x, count, H, W, PAIRED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    window = block * BLOCK + tl.arange(0, BLOCK)
    held = window < count
    row, column = window // (W // 2), window % (W // 2)
    at = (row // (H // 2) * H + row % (H // 2) * 2) * W + column * 2
    a, b = loaded(x, at, held, held, PAIRED)
    c, d = loaded(x, at + W, held, held, PAIRED)
    tl.store(out + window, tl.maximum(tl.maximum(a, b), tl.maximum(c, d)), held)


@triton.jit
def spread(
    grad_x, x, grad, count, H, W,
    PAIRED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    window = block * BLOCK + tl.arange(0, BLOCK)
    rows, columns = tl.cdiv(H, 2), tl.cdiv(W, 2)
    line, column = window // columns, window % columns
    image, row = line // rows, line % rows
    at = (image * H + row * 2) * W + column * 2
    left = window < count
    right = left & (column * 2 + 1 < W)
    lower = row * 2 + 1 < H
    a, b = loaded(x, at, left, right, PAIRED)
    c, d = loaded(x, at + W, left & lower, right & lower, PAIRED)
    source = (image * (H // 2) + row) * (W // 2) + column
    given = tl.load(grad + source, right & lower, other=0.0)
    upper_best, lower_best = tl.maximum(a, b), tl.maximum(c, d)
    is_upper = upper_best >= lower_best
    upper_grad, lower_grad = tl.where(is_upper, given, 0.0), tl.where(is_upper, 0.0, given)
    first, third = a >= b, c >= d
    stored(
        grad_x, at, tl.where(first, upper_grad, 0.0), tl.where(first, 0.0, upper_grad),
        left, right, PAIRED,
    )  # fmt: skip
    stored(
        grad_x, at + W, tl.where(third, lower_grad, 0.0), tl.where(third, 0.0, lower_grad),
        left & lower, right & lower, PAIRED,
    )  # fmt: skip


def pairs(x, paired):
    return x.view(torch.int64) if paired else x


def forward(x):
    batch, channels, H, W = x.shape
    out = torch.empty(batch, channels, H // 2, W // 2, device=x.device)
    paired = W % 2 == 0 and x.storage_offset() % 2 == 0
    count = out.numel()
    pooled[(triton.cdiv(count, BLOCK),)](
        out, pairs(x, paired), count, H, W, PAIRED=paired, WIDE=x.numel() >= 2**31, BLOCK=BLOCK
    )
    return out


def backward(x, grad_output):
    batch, channels, H, W = x.shape
    grad_x = torch.empty_like(x)
    paired = W % 2 == 0 and x.storage_offset() % 2 == 0
    count = batch * channels * triton.cdiv(H, 2) * triton.cdiv(W, 2)
    spread[(triton.cdiv(count, BLOCK),)](
        pairs(grad_x, paired), pairs(x, paired), grad_output, count, H, W,
        PAIRED=paired, WIDE=x.numel() >= 2**31, BLOCK=BLOCK,
    )  # fmt: skip
    return grad_x
