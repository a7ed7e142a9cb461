"""BF16 activations times packed FP4 weights with block scales, on tensor cores.

- Weights are loaded packed and decoded in registers. Twice a code's value is a small integer, whose
  product with the scale of its block is exact in BF16.
- Each byte holds two neighboring weights. Instead of interleaving them, the kernel multiplies the
  low nibbles by the even inputs and the high nibbles by the odd inputs. A small kernel separates
  the inputs beforehand.
- The weights form the rows of a tile, since `wgmma` can take its A operand from registers. The
  tokens form the columns, of which there may be few.
- With few tiles, split-K spreads the input dimension over more programs, so that all
  multiprocessors read weights, and a second kernel adds up the partial sums. The global scale and
  the factor 1/2 are applied at the end.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def taken_apart(x, out, size, count, BLOCK: tl.constexpr):
    """Write the even inputs of all rows, followed by the odd ones."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    held = at < size // 2
    even = tl.load(x + row * size + 2 * at, held)
    odd = tl.load(x + row * size + 2 * at + 1, held)
    tl.store(out + row * (size // 2) + at, even, held)
    tl.store(out + count + row * (size // 2) + at, odd, held)


@triton.jit
def number(code, scale):
    """Twice the code's value, times the scale of its block, in BF16."""
    size = code & 7
    whole = tl.where(size < 4, size, (2 + (size & 1)) << ((size >> 1) - 1 & 3))
    value = tl.where(code > 7, -whole, whole).to(tl.float32)
    return (value * scale).to(tl.bfloat16)


@triton.jit
def product(
    w, x, out, scales, scale, tokens, features, half,
    BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    panels = tl.cdiv(features, BN)
    n = tl.program_id(0) % panels * BN + tl.arange(0, BN)
    m = tl.program_id(0) // panels * BM + tl.arange(0, BM)
    steps = tl.cdiv(tl.cdiv(half, BK), SPLIT)
    begin = tl.program_id(1) * steps * BK
    total = tl.zeros((BN, BM), dtype=tl.float32)
    for k in range(begin, min(begin + steps * BK, half), BK):
        inner = k + tl.arange(0, BK)
        block = k // 8 + tl.arange(0, BK // 8)
        held = (n[:, None] < features) & (inner[None, :] < half)
        codes = tl.load(w + n.to(tl.int64)[:, None] * half + inner[None, :], held, other=0)
        codes = codes.to(tl.int32)
        held = (n[:, None] < features) & (block[None, :] < half // 8)
        by_block = tl.load(scales + n[:, None] * (half // 8) + block[None, :], held, other=0.0)
        by_block = by_block.to(tl.float32)
        wide = tl.broadcast_to(by_block[:, :, None], (BN, BK // 8, 8))
        wide = tl.reshape(wide, (BN, BK))
        held = (m[None, :] < tokens) & (inner[:, None] < half)
        source = x + m[None, :] * half + inner[:, None]
        total = tl.dot(number(codes & 15, wide), tl.load(source, held, other=0.0), total)
        odd = tl.load(source + tokens * half, held, other=0.0)
        total = tl.dot(number(codes >> 4, wide), odd, total)
    at = (tl.program_id(1).to(tl.int64) * tokens + m[None, :]) * features + n[:, None]
    if SPLIT == 1:
        total = total * (0.5 * tl.load(scale))
    held = (n[:, None] < features) & (m[None, :] < tokens)
    tl.store(out + at, total.to(out.dtype.element_ty), held)


@triton.jit
def finished(out, parts, scale, count, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    source = parts + at
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, at < count, other=0.0)
        source += count
    result = total * (0.5 * tl.load(scale))
    tl.store(out + at, result.to(out.dtype.element_ty), at < count)


def forward(x, weights, scales, scale, num_tokens, in_features, out_features):
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    half = in_features // 2
    values = torch.empty(2, num_tokens, half, device=x.device, dtype=x.dtype)
    taken_apart[(num_tokens, triton.cdiv(half, 512))](
        x, values, in_features, num_tokens * half, BLOCK=512
    )
    BM = min(128, max(16, triton.next_power_of_2(num_tokens)))
    BN, BK, warps = 64, 128 if BM <= 32 else 64, 4
    tiles = triton.cdiv(out_features, BN) * triton.cdiv(num_tokens, BM)
    split = 1
    while split < 16 and tiles * split < 2 * processors and half // (2 * split) >= 256:
        split *= 2
    out = torch.empty(num_tokens, out_features, device=x.device, dtype=x.dtype)
    parts = out
    if split > 1:
        parts = torch.empty(split, num_tokens, out_features, device=x.device)
    product[(tiles, split)](
        weights, values, parts, scales, scale, num_tokens, out_features, half,
        BN=BN, BM=BM, BK=BK, SPLIT=split, num_stages=3, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        count = num_tokens * out_features
        finished[(triton.cdiv(count, 512),)](out, parts, scale, count, SPLIT=split, BLOCK=512)
    return out
