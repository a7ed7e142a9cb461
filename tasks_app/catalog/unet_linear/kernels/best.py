"""Linear layer over all positions of a feature map, in float32 on tensor cores.

- Each float32 number is split into two TF32 numbers, and every product of their parts is computed
  except that of the two small parts. The result of each step is added in float32, so errors are
  close to those of FP32 units, in a fraction of their time. One kernel multiplies matrices with any
  strides.
- Tiles are prefetched into shared memory a few steps ahead, and programs that run at the same time
  share their inputs in the L2 cache.
- The gradient of the weights sums over all positions: few tiles, but a long inner dimension.
  Split-K spreads it over many programs, and a second kernel adds up their sums. The gradient of the
  biases is also computed from sums over parts of the rows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PARTS = 128  # programs that share the rows of a column, at most
PLANS = ((128, 128, 32, 3, 8), (64, 128, 32, 3, 4), (64, 64, 32, 4, 4))


@triton.jit
def place(tile, rows, columns, GROUP: tl.constexpr):
    """The row and column of a tile, in groups of GROUP rows of tiles."""
    size = GROUP * columns
    first = tile // size * GROUP
    height = min(rows - first, GROUP)
    return first + tile % size % height, tile % size // height


@triton.jit
def product(
    a, b, c, biases, M, N, K, a_row, a_inner, b_inner, b_column,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    BIAS: tl.constexpr,
):  # fmt: skip
    row, column = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), 8)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    steps = tl.cdiv(tl.cdiv(K, BK), SPLIT)
    begin = tl.program_id(1) * steps * BK
    inner = begin + tl.arange(0, BK)
    left = a + m.to(tl.int64)[:, None] * a_row + inner.to(tl.int64)[None, :] * a_inner
    right = b + inner.to(tl.int64)[:, None] * b_inner + n.to(tl.int64)[None, :] * b_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(begin, min(begin + steps * BK, K), BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(left, (m[:, None] < M) & (inner[None, :] < K), other=0.0)
        y = tl.load(right, (inner[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total, input_precision="tf32x3")
        left += BK * a_inner
        right += BK * b_inner
    at = m.to(tl.int64)[:, None] * N + n[None, :]
    held = (m[:, None] < M) & (n[None, :] < N)
    if SPLIT == 1:
        if BIAS:
            total += tl.load(biases + n, n < N, other=0.0)[None, :]
        tl.store(c + at, total, held)
    else:
        tl.store(c + tl.program_id(1).to(tl.int64) * M * N + at, total, held)


@triton.jit
def sum_of_parts(
    parts, c, biases, count, N,
    SPLIT: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    held = at < count
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    source = parts + at
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, held, other=0.0)
        source += count
    if BIAS:
        total += tl.load(biases + at % N, held, other=0.0)
    tl.store(c + at, total, held)


@triton.jit
def column_sums(out, x, rows, size, height, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The sums of each column over `height` rows."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.program_id(1) * height
    end = min(begin + height, rows)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(begin, end, ROWS):
        row = first + tl.arange(0, ROWS)
        held = (row[:, None] < end) & (column[None, :] < size)
        at = row.to(tl.int64)[:, None] * size + column[None, :]
        total += tl.load(x + at, held, other=0.0)
    tl.store(out + tl.program_id(1) * size + column, tl.sum(total, 0), column < size)


def plan_of(M, N, K, processors):
    """The largest tile that fills the GPU, and how many parts to split K into."""
    for plan in PLANS:
        tiles = triton.cdiv(M, plan[0]) * triton.cdiv(N, plan[1])
        if tiles >= 0.75 * processors and plan[0] < 2 * M:
            return plan, 1
    tiles = triton.cdiv(M, PLANS[-1][0]) * triton.cdiv(N, PLANS[-1][1])
    split = 1
    while split < 64 and tiles * split < 0.75 * processors and K // (2 * split) >= 256:
        split *= 2
    return PLANS[-1], split


def multiplied(a, b, biases=None):
    """Multiply two matrices with any strides, and add the biases, if any."""
    (M, K), N = a.shape, b.shape[1]
    processors = torch.cuda.get_device_properties(a.device).multi_processor_count
    (BM, BN, BK, stages, warps), split = plan_of(M, N, K, processors)
    c = torch.empty(M, N, device=a.device)
    sums = c if split == 1 else torch.empty(split, M, N, device=a.device)
    product[(triton.cdiv(M, BM) * triton.cdiv(N, BN), split)](
        a, b, sums, biases, M, N, K, *a.stride(), *b.stride(),
        BM=BM, BN=BN, BK=BK, SPLIT=split, BIAS=biases is not None,
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        sum_of_parts[(triton.cdiv(M * N, 1024),)](
            sums, c, biases, M * N, N, SPLIT=split, BIAS=biases is not None,
            BLOCK=1024,
        )  # fmt: skip
    return c


def forward(x, weights, biases):
    batch, positions, size = x.shape
    out = multiplied(x.view(batch * positions, size), weights.t(), biases)
    return out.view(batch, positions, weights.shape[0])


def backward(grad_output, x, weights):
    given = grad_output.view(-1, weights.shape[0])
    rows, size = given.shape
    parts = min(PARTS, triton.cdiv(rows, 64))
    height = triton.cdiv(triton.cdiv(rows, parts), 64) * 64
    sums = torch.empty(parts, size, device=x.device)
    grad_biases = torch.empty(size, device=x.device)
    columns = triton.cdiv(size, 32)
    column_sums[(columns, parts)](sums, given, rows, size, height, ROWS=64, BLOCK=32)
    column_sums[(columns, 1)](grad_biases, sums, parts, size, PARTS, ROWS=64, BLOCK=32)
    grad_weights = multiplied(given.t(), x.view(rows, weights.shape[1]))
    return multiplied(given, weights).view(x.shape), grad_weights, grad_biases
