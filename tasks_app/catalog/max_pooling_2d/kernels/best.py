"""Maximum over square windows, with a column of outputs per thread.

- A thread computes several outputs, one below the other. It goes down the rows of its input only
  once: the maximum of a window's part of a row is computed once, and reused for every window that
  contains the row.
- Thread numbers continue from one output row to the next, so short rows leave no thread idle.
  Neighboring threads load neighboring elements, which hit the L1 cache when windows overlap.
- Kernel size, stride and padding are compile-time constants, so all loops are unrolled, and many
  loads are in flight at the same time. Large windows use plain loops instead.
- Elements outside the image are minus infinity. Maxima are exact in any dtype.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 128
UNROLLED = 7  # the largest window whose loops are unrolled


@triton.jit
def pooled(
    out, x, H, W, OH, OW, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(1).to(tl.int64)
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    top, column = lane // OW * ROWS, lane % OW
    x += image * H * W
    out += image * OH * OW
    maxima = ()
    for step in tl.static_range((ROWS - 1) * S + K):
        row = top * S - P + step
        held = (row >= 0) & (row < H)
        largest = tl.full((BLOCK,), -float("inf"), tl.float32)
        for shift in tl.static_range(K):
            at = column * S - P + shift
            inside = held & (at >= 0) & (at < W)
            value = tl.load(x + row * W + at, inside, other=-float("inf"))
            largest = tl.maximum(largest, value.to(tl.float32))
        maxima += (largest,)
        if step >= K - 1 and (step - K + 1) % S == 0:
            for back in tl.static_range(1, K):
                largest = tl.maximum(largest, maxima[step - back])
            place = top + (step - K + 1) // S
            tl.store(out + place * OW + column, largest.to(out.dtype.element_ty), place < OH)


@triton.jit
def looped(out, x, H, W, OH, OW, K, S, P, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place, column = lane // OW, lane % OW
    x += image * H * W
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for step in range(K):
        row = place * S - P + step
        held = (place < OH) & (row >= 0) & (row < H)
        for shift in range(K):
            at = column * S - P + shift
            inside = held & (at >= 0) & (at < W)
            value = tl.load(x + row * W + at, inside, other=-float("inf"))
            largest = tl.maximum(largest, value.to(tl.float32))
    tl.store(out + image * OH * OW + lane, largest.to(out.dtype.element_ty), place < OH)


def forward(input, N, C, H, W, kernel_size, stride, padding):
    OH = (H + 2 * padding - kernel_size) // stride + 1
    OW = (W + 2 * padding - kernel_size) // stride + 1
    out = torch.empty(N, C, OH, OW, device=input.device, dtype=input.dtype)
    if kernel_size > UNROLLED:
        looped[(triton.cdiv(OH * OW, BLOCK), N * C)](
            out, input, H, W, OH, OW, kernel_size, stride, padding, BLOCK=BLOCK
        )
        return out
    rows = 8 if stride == 1 and OH * OW * N * C > 2**20 else 4
    grid = (triton.cdiv(triton.cdiv(OH, rows) * OW, BLOCK), N * C)
    pooled[grid](
        out, input, H, W, OH, OW, K=kernel_size, S=stride, P=padding, ROWS=rows, BLOCK=BLOCK
    )
    return out
