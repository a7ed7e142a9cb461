"""Int8 activations times int8 weights, on int8 tensor cores.

- The weights form the rows of a tile and the tokens its columns. `wgmma` needs 64 rows, but as few
  as eight columns, so a handful of tokens wastes little work.
- The TMA prefetches tiles into shared memory a few steps ahead. Rows whose length isn't a multiple
  of 16 bytes are first copied to zero-padded rows.
- Accumulators are int32, so sums are exact in any order. Scales are applied once a tile is
  complete.
- Programs are persistent and work through tiles in groups that share weights and tokens in the L2
  cache.
- With few tiles, split-K spreads the sums of a tile over more programs, so that all multiprocessors
  read weights. A second kernel adds up the parts and applies the scales.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def place(tile, rows, columns, GROUP: tl.constexpr):
    """The row and column of a tile, in groups of GROUP rows of tiles."""
    size = GROUP * columns
    first = tile // size * GROUP
    height = min(rows - first, GROUP)
    return first + tile % size % height, tile % size // height


@triton.jit
def product(
    w, x, out, w_scales, x_scales, tokens, features, size,
    BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.cdiv(features, BN), tl.cdiv(tokens, BM)
    steps = tl.cdiv(tl.cdiv(size, BK), SPLIT)
    for item in tl.range(
        tl.program_id(0), rows * columns * SPLIT, tl.num_programs(0), flatten=True
    ):
        part = item % SPLIT
        row, column = place(item // SPLIT, rows, columns, 8)
        total = tl.zeros((BN, BM), dtype=tl.int32)
        for k in range(part * steps, min(part * steps + steps, tl.cdiv(size, BK))):
            weights = w.load([row * BN, k * BK])
            values = x.load([column * BM, k * BK])
            total = tl.dot(weights, values.T, total, out_dtype=tl.int32)
        n = row * BN + tl.arange(0, BN)
        m = column * BM + tl.arange(0, BM)
        held = (n[:, None] < features) & (m[None, :] < tokens)
        at = (part.to(tl.int64) * tokens + m[None, :]) * features + n[:, None]
        if SPLIT == 1:
            by_row = tl.load(w_scales + n, n < features, other=0.0)
            by_token = tl.load(x_scales + m, m < tokens, other=0.0)
            result = total.to(tl.float32) * by_token[None, :] * by_row[:, None]
            tl.store(out + at, result.to(tl.bfloat16), held)
        else:
            tl.store(out + at, total, held)


@triton.jit
def finished(
    out, parts, w_scales, x_scales, tokens, features, SPLIT: tl.constexpr, BLOCK: tl.constexpr
):
    """Add up the parts of a block of one token's features, and scale the sums."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    token = tl.program_id(1).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    source = parts + token * features + n
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, n < features, other=0)
        source += tokens * features
    scale = tl.load(w_scales + n, n < features, other=0.0)
    result = total.to(tl.float32) * tl.load(x_scales + token) * scale
    tl.store(out + token * features + n, result.to(tl.bfloat16), n < features)


@triton.jit
def widen(x, out, width, new_width, BLOCK: tl.constexpr):
    """Copy rows to wider ones, padded with zeros."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    value = tl.load(x + row * width + at, at < width, other=0)
    tl.store(out + row * new_width + at, value, at < new_width)


def aligned(x, unit):
    """The matrix itself, or a copy with rows padded to a multiple of `unit` elements."""
    rows, width = x.shape
    if width % unit == 0:
        return x
    new_width = triton.cdiv(width, unit) * unit
    out = torch.empty(rows, new_width, device=x.device, dtype=x.dtype)
    widen[(rows, triton.cdiv(new_width, 1024))](x, out, width, new_width, BLOCK=1024)
    return out


def plan_of(tokens, features, size, processors):
    """A tile's rows, columns and depth; stages; warps; programs per multiprocessor; splits."""
    if tokens > 128:
        wide = triton.cdiv(features, 128) * triton.cdiv(tokens, 256) >= 0.75 * processors
        return (128, 256, 128, 3, 8, 1, 1) if wide else (128, 128, 128, 4, 8, 1, 1)
    BM = max(16, triton.next_power_of_2(tokens))
    BK = 256 if tokens <= 32 else 128
    tiles, split = triton.cdiv(features, 64), 1
    while split < 16 and tiles * split < processors and size // (2 * split) >= 512:
        split *= 2
    return 64, BM, BK, 4, 4, 2, split


def forward(x, x_scales, weights, weight_scales, num_tokens, in_features, out_features):
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    plan = plan_of(num_tokens, out_features, in_features, processors)
    BN, BM, BK, stages, warps, each, split = plan
    items = triton.cdiv(out_features, BN) * triton.cdiv(num_tokens, BM) * split
    out = torch.empty(num_tokens, out_features, device=x.device, dtype=torch.bfloat16)
    parts = out
    if split > 1:
        parts = torch.empty(split, num_tokens, out_features, device=x.device, dtype=torch.int32)
    product[(min(items, each * processors),)](
        TensorDescriptor.from_tensor(aligned(weights, 16), [BN, BK]),
        TensorDescriptor.from_tensor(aligned(x, 16), [BM, BK]),
        parts, weight_scales, x_scales, num_tokens, out_features, in_features,
        BN=BN, BM=BM, BK=BK, SPLIT=split, num_stages=stages, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        grid = triton.cdiv(out_features, 512), num_tokens
        finished[grid](
            out, parts, weight_scales, x_scales, num_tokens, out_features, SPLIT=split, BLOCK=512
        )
    return out
