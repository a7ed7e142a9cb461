"""Maximum over cubic windows, with a small block of outputs per thread.

- A thread computes outputs in a few neighboring planes and rows. It goes through the planes and
  rows of its input only once: the maximum of a window's part of a row, or of a plane, is computed
  once, and reused for every window that contains this part.
- Thread numbers continue from one output row to the next, so short rows leave no thread idle.
  Neighboring threads load neighboring elements, which hit the L1 cache when windows overlap.
- Kernel size, stride and padding are compile-time constants, so all loops are unrolled, and many
  loads are in flight at the same time. Large windows use plain loops instead.
- Elements outside the volume are minus infinity. Maxima are exact in any dtype.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 128
UNROLLED = 5  # the largest window whose loops are unrolled


@triton.jit
def plane_maxima(
    x, plane, top, column, D, H, W, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The maxima of ROWS windows of a plane, one below the other."""
    rows = ()
    found = ()
    for step in tl.static_range((ROWS - 1) * S + K):
        row = top * S - P + step
        held = (plane >= 0) & (plane < D) & (row >= 0) & (row < H)
        largest = tl.full((BLOCK,), -float("inf"), tl.float32)
        for shift in tl.static_range(K):
            at = column * S - P + shift
            inside = held & (at >= 0) & (at < W)
            value = tl.load(x + (plane * H + row) * W + at, inside, other=-float("inf"))
            largest = tl.maximum(largest, value.to(tl.float32))
        rows += (largest,)
        if step >= K - 1 and (step - K + 1) % S == 0:
            for back in tl.static_range(1, K):
                largest = tl.maximum(largest, rows[step - back])
            found += (largest,)
    return found


@triton.jit
def pooled(
    out, x, D, H, W, OD, OH, OW, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr,
    PLANES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    volume = tl.program_id(2).to(tl.int64)
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    front = tl.program_id(1) * PLANES
    top, column = lane // OW * ROWS, lane % OW
    x += volume * D * H * W
    out += volume * OD * OH * OW
    planes = ()
    for step in tl.static_range((PLANES - 1) * S + K):
        plane = front * S - P + step
        found = plane_maxima(x, plane, top, column, D, H, W, K, S, P, ROWS, BLOCK)
        planes += (found,)
        if step >= K - 1 and (step - K + 1) % S == 0:
            depth = front + (step - K + 1) // S
            for row in tl.static_range(ROWS):
                largest = found[row]
                for back in tl.static_range(1, K):
                    largest = tl.maximum(largest, planes[step - back][row])
                held = (depth < OD) & (top + row < OH)
                place = (depth * OH + top + row) * OW + column
                tl.store(out + place, largest.to(out.dtype.element_ty), held)


@triton.jit
def looped(out, x, D, H, W, OD, OH, OW, K, S, P, BLOCK: tl.constexpr):
    volume = tl.program_id(1).to(tl.int64)
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    depth, place, column = lane // (OH * OW), lane // OW % OH, lane % OW
    x += volume * D * H * W
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for window in range(K * K * K):
        plane = depth * S - P + window // (K * K)
        row = place * S - P + window // K % K
        at = column * S - P + window % K
        inside = (depth < OD) & (plane >= 0) & (plane < D) & (row >= 0) & (row < H)
        inside &= (at >= 0) & (at < W)
        value = tl.load(x + (plane * H + row) * W + at, inside, other=-float("inf"))
        largest = tl.maximum(largest, value.to(tl.float32))
    tl.store(out + volume * OD * OH * OW + lane, largest.to(out.dtype.element_ty), depth < OD)


def forward(input, N, C, D, H, W, kernel_size, stride, padding):
    OD, OH, OW = ((size + 2 * padding - kernel_size) // stride + 1 for size in (D, H, W))
    out = torch.empty(N, C, OD, OH, OW, device=input.device, dtype=input.dtype)
    if kernel_size > UNROLLED:
        looped[(triton.cdiv(OD * OH * OW, BLOCK), N * C)](
            out, input, D, H, W, OD, OH, OW, kernel_size, stride, padding, BLOCK=BLOCK
        )
        return out
    many = OD * OH * OW * N * C > 2**20
    planes, rows = ((4, 4) if many else (2, 4)) if stride == 1 else (2, 2)
    if kernel_size <= stride:
        planes, rows = 1, 2 if many else 1
    grid = (triton.cdiv(triton.cdiv(OH, rows) * OW, BLOCK), triton.cdiv(OD, planes), N * C)
    pooled[grid](
        out, input, D, H, W, OD, OH, OW, K=kernel_size, S=stride, P=padding,
        PLANES=planes, ROWS=rows, BLOCK=BLOCK,
    )  # fmt: skip
    return out
