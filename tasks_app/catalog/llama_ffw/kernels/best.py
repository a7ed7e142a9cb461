"""Feed-forward layer of a language model (SwiGLU), for float32 on tensor cores.

- Each float32 number is split into two TF32 numbers, and all products are computed except that of
  the two small parts. The result of each step is added in float32. This keeps close to float32
  precision and takes a fraction of the time of the FP32 units.
- There are three products: the gates; the values, each multiplied by `silu` of its gate before it
  is stored; and the result. Only split-K writes other intermediates to memory.
- Weights are read in place: the kernel takes any strides and needs no transposed copies.
- Tiles are prefetched into shared memory a few steps ahead. Programs are ordered in groups of tiles
  that share their inputs in the L2 cache. With few tiles, split-K spreads the inner dimension over
  more programs, and a second kernel adds up the partial sums.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PLANS = ((128, 128, 32, 3, 8), (64, 128, 32, 3, 4), (64, 64, 32, 4, 4))


@triton.jit
def place(tile, rows, columns, GROUP: tl.constexpr):
    """The row and column of a tile, in groups of GROUP rows of tiles."""
    size = GROUP * columns
    first = tile // size * GROUP
    height = min(rows - first, GROUP)
    return first + tile % size % height, tile % size // height


@triton.jit
def gated(total, gate, at, held):
    """A value times `silu` of its gate."""
    given = tl.load(gate + at, held, other=0.0)
    return total * given / (1.0 + tl.exp(-given))


@triton.jit
def product(
    a, b, c, gate, M, N, K, a_row, a_inner, b_inner, b_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    GATED: tl.constexpr,
):  # fmt: skip
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), 8)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    steps = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    begin = tl.program_id(1) * steps * BK
    inner = begin + tl.arange(0, BK)
    left = a + m[:, None] * a_row + inner[None, :] * a_inner
    right = b + inner[:, None] * b_inner + n[None, :] * b_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(begin, min(begin + steps * BK, K), BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(left, (m[:, None] < M) & (inner[None, :] < K), other=0.0)
        y = tl.load(right, (inner[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total, input_precision="tf32x3")
        left += BK * a_inner
        right += BK * b_inner
    at = m[:, None] * N + n[None, :]
    held = (m[:, None] < M) & (n[None, :] < N)
    if SPLIT == 1:
        if GATED:
            total = gated(total, gate, at, held)
        tl.store(c + at, total, held)
    else:
        tl.store(c + tl.program_id(1).to(tl.int64) * M * N + at, total, held)


@triton.jit
def sum_of_parts(
    parts, c, gate, count,
    SPLIT: tl.constexpr, GATED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    held = at < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    source = parts + at
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, held, other=0.0)
        source += count
    if GATED:
        total = gated(total, gate, at, held)
    tl.store(c + at, total, held)


def plan_of(M, N, K, processors):
    """The largest tile that fills the GPU, and how many parts to split K into."""
    for plan in PLANS:
        tiles = triton.cdiv(M, plan[0]) * triton.cdiv(N, plan[1])
        if tiles >= 0.75 * processors and plan[0] < 2 * M:
            return plan, 1
    tiles = triton.cdiv(M, PLANS[-1][0]) * triton.cdiv(N, PLANS[-1][1])
    split = 1
    while split < 16 and tiles * split < 0.75 * processors and K // (2 * split) >= 128:
        split *= 2
    return PLANS[-1], split


def multiplied(a, b, gate=None):
    """Multiply two matrices with any strides, and scale by `silu` of the gates, if any."""
    (M, K), N = a.shape, b.shape[1]
    processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    (BM, BN, BK, stages, warps), split = plan_of(M, N, K, processors)
    c = torch.empty(M, N, device=a.device)
    sums = c if split == 1 else torch.empty(split, M, N, device=a.device)
    product[(triton.cdiv(M, BM) * triton.cdiv(N, BN), split)](
        a, b, sums, gate, M, N, K, *a.stride(), *b.stride(),
        BM=BM, BN=BN, BK=BK, SPLIT=split, GATED=gate is not None,
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        sum_of_parts[(triton.cdiv(M * N, 1024),)](
            sums, c, gate, M * N, SPLIT=split, GATED=gate is not None,
            BLOCK=1024,
        )  # fmt: skip
    return c


def forward(x, gate_proj, up_proj, down_proj):
    tokens = x.view(-1, x.shape[-1])
    gates = multiplied(tokens, gate_proj.t())
    values = multiplied(tokens, up_proj.t(), gates)
    return multiplied(values, down_proj.t()).view(x.shape)
