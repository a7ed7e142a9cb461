"""Rotation of neighboring elements by their position's angles.

- A thread loads neighbors together: a block is read and written in order, and taken apart into
  its even and odd elements in registers.
- The frequencies `base^(-2i / D)` are the same in all rows. A program finds those of its columns
  once, and uses them for several rows; a power costs more than the memory does otherwise.
- Angles reach thousands of radians, so sines and cosines must be those of full precision, which
  subtract multiples of pi/2 exactly. So do `tl.sin` and `tl.cos`.
- All of this is float32 also for BF16, whose results are rounded once.
- Many rows get eight a program, few rows one, so that all multiprocessors have work.
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
