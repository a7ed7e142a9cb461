"""Rotary embedding with tables of cosines and sines, forward and backward.

- Each program handles all heads of one token, or some of them if there are many. It reads the table
  row for the token's position once, and both halves of each head's rotated part.
- The same program copies the elements past the rotated part.
- The gradient is the rotation by the negative angle, so the backward pass runs the same kernel with
  the sign of the sines flipped.
- Each half is padded to a power of two, with the excess masked. Threads move up to 16 bytes at a
  time, and several heads per program keep enough loads in flight.
- All arithmetic is float32, even for BF16, and each result is rounded once.
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
