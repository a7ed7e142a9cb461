"""Rotary embedding by tables of cosines and sines, forward and backward.

- A program handles all heads of one token, or some if these are many: it reads the row of the
  tables that the token's position names once, and both halves of each head's rotated part.
- Elements behind the rotated part are copied by the same program.
- The gradient is the rotation by the negated angle, so the backward pass is the same kernel with
  the sines' sign turned around.
- Halves are loaded as powers of two, of which the rest is masked; a thread moves up to 16 bytes at
  a time, and several heads a program keep enough loads under way.
- Products and sums are float32 also for BF16, and rounded once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def rotated(
    out, x, cosines, sines, positions, heads, size, half, sign,
    HEADS: tl.constexpr, HALF: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    position = tl.load(positions + token).to(tl.int64)
    inner = tl.arange(0, HALF)
    held = inner < half
    cosine = tl.load(cosines + position * half + inner, held, other=0.0).to(tl.float32)[None, :]
    sine = tl.load(sines + position * half + inner, held, other=0.0).to(tl.float32)[None, :] * sign
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    begin = (token * heads + head[:, None]) * size
    at = begin + inner[None, :]
    inside = (head[:, None] < heads) & held[None, :]
    first = tl.load(x + at, inside, other=0.0).to(tl.float32)
    second = tl.load(x + at + half, inside, other=0.0).to(tl.float32)
    dtype = out.dtype.element_ty
    tl.store(out + at, (first * cosine - second * sine).to(dtype), inside)
    tl.store(out + at + half, (second * cosine + first * sine).to(dtype), inside)
    if REST > 0:
        last = 2 * half + tl.arange(0, REST)
        inside = (head[:, None] < heads) & (last[None, :] < size)
        tl.store(out + begin + last[None, :], tl.load(x + begin + last[None, :], inside), inside)


def turned(x, cosines, sines, positions, sign):
    heads, size = x.shape[2:]
    half = cosines.shape[1]
    out = torch.empty_like(x)
    block, rest = triton.next_power_of_2(half), size - 2 * half
    count = min(triton.next_power_of_2(heads), max(1, 2048 // block))
    rotated[(positions.numel(), triton.cdiv(heads, count))](
        out, x, cosines, sines, positions, heads, size, half, sign,
        HEADS=count, HALF=block, REST=triton.next_power_of_2(rest) if rest else 0, num_warps=4,
    )  # fmt: skip
    return out


def forward(x, cosines, sines, positions):
    return turned(x, cosines, sines, positions, 1.0)


def backward(grad_output, cosines, sines, positions):
    return (turned(grad_output, cosines, sines, positions, -1.0),)
