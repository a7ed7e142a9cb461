"""Batch normalization that reads the samples once or, if there are many, twice.

- Up to 2048 samples: a program keeps all samples of a few channels in registers. It subtracts the
  mean before it squares, so channels far from zero lose no precision.
- More samples: each program of the first kernel handles some of the rows of a few channels. It sums
  the deviations from the mean of its first rows, and their squares, so channels far from zero lose
  little precision. Each thread sums its own rows, and the threads combine their sums once, at the
  end. The second kernel merges the parts with Chan's formula. The third applies the result,
  starting with the rows that were read last and are still in the L2 cache.
- All arithmetic is float32, even for BF16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

WHOLE = 2048  # samples that a program holds in registers
PARTS = 128  # programs that share the rows of a channel, at most


@triton.jit
def normalized(out, x, gamma, beta, epsilon, N, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    at = row.to(tl.int64) * C + column
    held = (row < N) & (column < C)
    value = tl.load(x + at, held, other=0.0).to(tl.float32)
    factor = tl.load(gamma + column, column < C, other=0.0).to(tl.float32)
    term = tl.load(beta + column, column < C, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0)[None, :] / N
    value = tl.where(row < N, value - mean, 0.0)
    variance = tl.sum(value * value, 0)[None, :] / N
    result = value * (factor / tl.sqrt(variance + epsilon)) + term
    tl.store(out + at, result.to(out.dtype.element_ty), held)


@triton.jit
def statistics(means, squares, x, N, C, rows, TILE: tl.constexpr, BLOCK: tl.constexpr):
    """Each channel's mean and sum of squared deviations over `rows` samples."""
    part = tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = part * rows
    end = min(begin + rows, N)
    place = tl.arange(0, TILE)
    at = (begin + place).to(tl.int64)[:, None] * C + column[None, :]
    held = ((begin + place) < end)[:, None] & (column < C)[None, :]
    value = tl.load(x + at, held, other=0.0).to(tl.float32)
    center = (tl.sum(value, 0) / tl.cast(min(rows, TILE), tl.float32))[None, :]
    total = tl.zeros((TILE, BLOCK), dtype=tl.float32)
    square = tl.zeros((TILE, BLOCK), dtype=tl.float32)
    for first in range(begin, end, TILE):
        row = first + place
        at = row.to(tl.int64)[:, None] * C + column[None, :]
        held = (row < end)[:, None] & (column < C)[None, :]
        value = tl.load(x + at, held, other=0.0).to(tl.float32)
        away = tl.where(held, value - center, 0.0)
        total += away
        square += away * away
    count = tl.cast(end - begin, tl.float32)
    sums = tl.sum(total, 0)
    mean = tl.sum(center, 0) + sums / count
    squared = tl.maximum(tl.sum(square, 0) - sums * (sums / count), 0.0)
    at_part = part.to(tl.int64) * C + column
    tl.store(means + at_part, mean, column < C)
    tl.store(squares + at_part, squared, column < C)


@triton.jit
def merged(
    found, means, squares, gamma, epsilon, N, C, rows, parts,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Each channel's mean, and the factor for its deviations."""
    part = tl.arange(0, PARTS)[:, None]
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    held = (part < parts) & (column < C)
    count = tl.where(part < parts, tl.minimum(N - part * rows, rows), 0).to(tl.float32)
    mean = tl.load(means + part * C + column, held, other=0.0)
    square = tl.load(squares + part * C + column, held, other=0.0)
    # Relative to the first part's mean, since a sum of large means would be less precise.
    center = tl.load(means + column, column < C, other=0.0)
    shift = tl.sum((mean - center) * count, 0)[None, :] / N
    away = mean - center - shift
    variance = tl.sum(square + away * away * count, 0)[None, :] / N
    factor = tl.load(gamma + column, column < C, other=0.0).to(tl.float32)
    tl.store(found + column, center + shift, column < C)
    tl.store(found + C + column, factor / tl.sqrt(variance + epsilon), column < C)


@triton.jit
def applied(out, x, found, beta, N, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * ROWS
    row = first + tl.arange(0, ROWS)[:, None]
    held = (row < N) & (column < C)
    at = row.to(tl.int64) * C + column
    mean = tl.load(found + column, column < C, other=0.0)
    factor = tl.load(found + C + column, column < C, other=0.0)
    term = tl.load(beta + column, column < C, other=0.0).to(tl.float32)
    value = tl.load(x + at, held, other=0.0).to(tl.float32)
    result = (value - mean) * factor + term
    tl.store(out + at, result.to(out.dtype.element_ty), held)


def forward(input, gamma, beta, epsilon, N, C):
    out = torch.empty_like(input)
    if N <= WHOLE:
        rows = max(2, triton.next_power_of_2(N))
        block = max(8, min(64, 8192 // rows, triton.next_power_of_2(C)))
        normalized[(triton.cdiv(C, block),)](
            out, input, gamma, beta, epsilon, N, C, ROWS=rows, BLOCK=block,
            num_warps=min(16, max(1, rows * block // 512)),
        )  # fmt: skip
        return out
    block = min(128, triton.next_power_of_2(C))
    tile = 4096 // block
    parts = min(PARTS, triton.cdiv(N, tile))
    rows = triton.cdiv(triton.cdiv(N, parts), tile) * tile
    parts = triton.cdiv(N, rows)
    means = torch.empty(2, parts, C, device=input.device)
    found = torch.empty(2, C, device=input.device)
    columns = triton.cdiv(C, block)
    statistics[(columns, parts)](
        means[0], means[1], input, N, C, rows, TILE=tile, BLOCK=block, num_warps=8
    )
    merged[(triton.cdiv(C, 16),)](
        found, means[0], means[1], gamma, epsilon, N, C, rows, parts,
        PARTS=triton.next_power_of_2(parts), BLOCK=16,
    )  # fmt: skip
    wide = min(1024, triton.next_power_of_2(C))
    height = 4096 // wide
    applied[(triton.cdiv(C, wide), triton.cdiv(N, height))](
        out, input, found, beta, N, C, ROWS=height, BLOCK=wide, num_warps=8
    )
    return out
