"""Rotary embedding of neighboring elements, with angles computed from the position.

- Each thread loads neighboring elements together: a block is read and written in order, and split
  into its even and odd elements on chip.
- The frequencies `base^(-2i / D)` are the same for all rows. A program computes them once for its
  columns and uses them for several rows, since computing them for each element would cost more than
  the memory traffic.
- Angles reach thousands of radians, so sine and cosine need an accurate range reduction. `tl.sin`
  and `tl.cos` have one.
- All of this is float32, even for BF16, and each result is rounded once.
- Large inputs get eight rows per program, small ones a single row, so that all multiprocessors have
  work.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl


@triton.jit
def rotated(out, x, M, D, exponent, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pair = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    frequency = tl.exp2(pair.to(tl.float32) * exponent)
    at = tl.program_id(1) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    for row in range(tl.program_id(0) * ROWS, min(tl.program_id(0) * ROWS + ROWS, M)):
        source = x + tl.cast(row, tl.int64) * D
        value = tl.load(source + at, at < D, other=0.0).to(tl.float32)
        even, odd = tl.split(tl.reshape(value, (BLOCK, 2)))
        angle = row * frequency
        cosine, sine = tl.cos(angle), tl.sin(angle)
        result = tl.interleave(even * cosine - odd * sine, even * sine + odd * cosine)
        target = out + tl.cast(row, tl.int64) * D
        tl.store(target + at, result.to(out.dtype.element_ty), at < D)


def forward(input, M, D, base):
    out = torch.empty_like(input)
    block = min(512, triton.next_power_of_2(D // 2))
    rows = 8 if M * D > 2**20 else 1
    rotated[(triton.cdiv(M, rows), triton.cdiv(D // 2, block))](
        out, input, M, D, -2.0 / D * math.log2(base), ROWS=rows, BLOCK=block,
        num_warps=max(1, block // 128),
    )  # fmt: skip
    return out
