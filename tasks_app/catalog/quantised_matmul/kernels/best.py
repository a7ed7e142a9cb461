"""BF16 or FP32 activations times int8 weights, on BF16 tensor cores.

- Weights are loaded as int8 and converted in registers to BF16, which represents them exactly. For
  this, the weights form the rows of a tile, since `wgmma` can take its A operand from registers.
  The tokens form the columns, of which there may be few.
- FP32: each activation is split into three BF16 numbers that add up to it. Their products with the
  weights are exact, and the result of each step is added in float32. This keeps close to float32
  precision at a multiple of the speed of the FP32 units.
- Tiles are prefetched into shared memory a few steps ahead, and programs are ordered in groups that
  share weights and tokens in the L2 cache. Rows whose length isn't a multiple of 16 are first
  copied to zero-padded rows.
- With few tiles, split-K spreads the input dimension over more programs, so that all
  multiprocessors read weights, and a second kernel adds up the partial sums. Scales are applied at
  the end.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def place(tile, rows, columns, GROUP: tl.constexpr):
    """The row and column of a tile, in groups of GROUP rows of tiles."""
    size = GROUP * columns
    first = tile // size * GROUP
    height = min(rows - first, GROUP)
    return first + tile % size % height, tile % size // height


@triton.jit
def product(
    w, x, out, scales, tokens, features, size, width, w_width,
    BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    PIECES: tl.constexpr,
):  # fmt: skip
    row, column = place(tl.program_id(0), tl.cdiv(features, BN), tl.cdiv(tokens, BM), 8)
    n = row * BN + tl.arange(0, BN)
    m = column * BM + tl.arange(0, BM)
    steps = tl.cdiv(tl.cdiv(size, BK), SPLIT)
    begin = tl.program_id(1) * steps * BK
    inner = begin + tl.arange(0, BK)
    left = w + n.to(tl.int64)[:, None] * w_width + inner[None, :]
    right = x + m[None, :] * width + inner[:, None]
    total = tl.zeros((BN, BM), dtype=tl.float32)
    for k in range(begin, min(begin + steps * BK, size), BK):
        inner = k + tl.arange(0, BK)
        held = (m[None, :] < tokens) & (inner[:, None] < width)
        weights = tl.load(left, (n[:, None] < features) & (inner[None, :] < w_width), other=0)
        weights = weights.to(tl.float32).to(tl.bfloat16)
        if PIECES == 1:
            total = tl.dot(weights, tl.load(right, held, other=0.0), total)
        else:
            first = tl.load(right, held, other=0.0)
            second = tl.load(right + tokens * width, held, other=0.0)
            third = tl.load(right + 2 * tokens * width, held, other=0.0)
            part = tl.dot(weights, third)
            part = tl.dot(weights, second, part)
            total += tl.dot(weights, first, part)
        left += BK
        right += BK
    at = (tl.program_id(1).to(tl.int64) * tokens + m[None, :]) * features + n[:, None]
    if SPLIT == 1:
        total = total * tl.load(scales + n, n < features, other=0.0).to(tl.float32)[:, None]
    held = (n[:, None] < features) & (m[None, :] < tokens)
    tl.store(out + at, total.to(out.dtype.element_ty), held)


@triton.jit
def finished(out, parts, scales, tokens, features, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """Add up the parts of a block of one token's features, and scale the sums."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    token = tl.program_id(1).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    source = parts + token * features + n
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, n < features, other=0.0)
        source += tokens * features
    scale = tl.load(scales + n, n < features, other=0.0).to(tl.float32)
    tl.store(out + token * features + n, (total * scale).to(out.dtype.element_ty), n < features)


@triton.jit
def pieces(x, out, rows, size, width, PIECES: tl.constexpr, BLOCK: tl.constexpr):
    """Copy activations to BF16 rows of `width`, padded with zeros.

    With three pieces, stored one after another, the pieces add up to the float32 number.
    """
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    value = tl.load(x + row * size + at, at < size, other=0.0)
    target = out + row * width + at
    for _ in tl.static_range(PIECES):
        piece = value.to(tl.bfloat16)
        tl.store(target, piece, at < width)
        value = value - piece.to(value.dtype)
        target += rows * width


@triton.jit
def widen(x, out, width, new_width, BLOCK: tl.constexpr):
    """Copy rows to wider ones, padded with zeros."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    value = tl.load(x + row * width + at, at < width, other=0)
    tl.store(out + row * new_width + at, value, at < new_width)


def activations(x, width):
    """The activations as one BF16 matrix, or as three that add up to them."""
    tokens, size = x.shape
    if x.dtype is torch.bfloat16 and width == size:
        return x
    count = 1 if x.dtype is torch.bfloat16 else 3
    out = torch.empty(count, tokens, width, device=x.device, dtype=torch.bfloat16)
    grid = tokens, triton.cdiv(width, 1024)
    pieces[grid](x, out, tokens, size, width, PIECES=count, BLOCK=1024)
    return out


def plan_of(tokens, features, size, processors):
    """A tile's rows, columns and depth; stages; warps; splits of the inputs."""
    if tokens > 128:
        return 128, 128, 64, 3, 8, 1
    BM = max(16, triton.next_power_of_2(tokens))
    tiles, split = triton.cdiv(features, 64), 1
    while split < 16 and tiles * split < 1.5 * processors and size // (2 * split) >= 512:
        split *= 2
    return 64, BM, 128 if BM <= 64 else 64, 3, 4, split


def forward(x, weights, scales):
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    (tokens, size), features = x.shape, weights.shape[0]
    BN, BM, BK, stages, warps, split = plan_of(tokens, features, size, processors)
    width = triton.cdiv(size, 16) * 16
    if width != size:
        longer = torch.empty(features, width, device=x.device, dtype=torch.int8)
        widen[(features, triton.cdiv(width, 1024))](weights, longer, size, width, BLOCK=1024)
        weights = longer
    values = activations(x, width)
    out = torch.empty(tokens, features, device=x.device, dtype=x.dtype)
    parts = out if split == 1 else torch.empty(split, tokens, features, device=x.device)
    tiles = triton.cdiv(features, BN) * triton.cdiv(tokens, BM)
    product[(tiles, split)](
        weights, values, parts, scales, tokens, features, size, width, width,
        BN=BN, BM=BM, BK=BK, SPLIT=split, PIECES=1 if x.dtype is torch.bfloat16 else 3,
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        grid = triton.cdiv(features, 512), tokens
        finished[grid](out, parts, scales, tokens, features, SPLIT=split, BLOCK=512)
    return out
