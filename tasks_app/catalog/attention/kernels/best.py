"""Causal attention for BF16 and FP32, in one pass over the keys.

- Each program holds a tile of one head's queries and streams the keys and values that these can
  see. Scores never leave the chip: each row's running maximum rescales its accumulator and running
  sum (online softmax).
- Key tiles that every query sees come first and need no causal mask. Only the tiles on the diagonal
  compare positions.
- Exponentials are base 2, like the hardware's instruction: log2(e) is folded into the scale of the
  scores.
- Within a head, the tiles with the most keys start first, so that the last programs to run are
  short.
- On Hopper, BF16 with wide heads or many tokens takes another kernel: one warp copies tiles with
  the TMA, and two warpgroups compute 64 queries each. The tensor cores compute a tile's scores, and
  then add the previous tile's weighted values during the softmax. Tiles of keys run from the last
  to the first, so only the first one processed needs a mask.
- BF16: scores and sums are float32, and softmax weights are rounded to BF16 for the second product.
- FP32: each product is computed as three TF32 products (`tf32x3`), close to float32 precision.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

LOG2_E = 1.4426950408889634
BN, STAGES = gl.constexpr(128), gl.constexpr(2)  # keys of a tile, and tiles in shared memory


@triton.jit
def step(
    total, largest, sums, q, k, v, row, first, count, scale, inner, HEAD: tl.constexpr,
    WIDTH: tl.constexpr, BN: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Process the tile of keys that starts at `first`."""
    column = first + tl.arange(0, BN)
    held = inner[None, :] < HEAD
    if EDGE:
        held = held & (column[:, None] < count)
    at = column[:, None] * HEAD + inner[None, :]
    if EDGE or HEAD != WIDTH:
        keys = tl.load(k + at, held, other=0.0)
        values = tl.load(v + at, held, other=0.0)
    else:
        keys = tl.load(k + at)
        values = tl.load(v + at)
    scores = tl.dot(q, tl.trans(keys), input_precision=PRECISION) * scale
    if EDGE:
        scores = tl.where(row[:, None] >= column[None, :], scores, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, 1))
    weights = tl.exp2(scores - new[:, None])
    shrunk = tl.exp2(largest - new)
    sums = sums * shrunk + tl.sum(weights, 1)
    total = total * shrunk[:, None]
    total = tl.dot(weights.to(values.dtype), values, total, input_precision=PRECISION)
    return total, new, sums


@triton.jit
def attention(
    query, key, value, out, count, group, scale, HEAD: tl.constexpr, WIDTH: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    k = key + head // group * count * HEAD
    v = value + head // group * count * HEAD
    row = tile * BM + tl.arange(0, BM)
    inner = tl.arange(0, WIDTH)
    held = (row[:, None] < count) & (inner[None, :] < HEAD)
    at = head * count * HEAD + row[:, None] * HEAD + inner[None, :]
    q = tl.load(query + at, held, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    sums = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, WIDTH), dtype=tl.float32)
    diagonal = tile * BM // BN * BN
    for first in range(0, diagonal, BN):
        total, largest, sums = step(
            total, largest, sums, q, k, v, row, first, count, scale, inner,
            HEAD, WIDTH, BN, False, PRECISION,
        )  # fmt: skip
    for first in range(diagonal, min((tile + 1) * BM, count), BN):
        total, largest, sums = step(
            total, largest, sums, q, k, v, row, first, count, scale, inner,
            HEAD, WIDTH, BN, True, PRECISION,
        )  # fmt: skip
    tl.store(out + at, (total / sums[:, None]).to(out.dtype.element_ty), held)


@gluon.jit
def loading(q, k, v, sq, sk, sv, full, empty, tile, head, own, tiles):
    """Copy the queries, then the tiles of keys and values from the last to the first."""
    mbarrier.expect(full.index(2 * STAGES), 2 * q.block_type.nbytes)
    for half in gl.static_range(2):
        at = [head, tile * 128 + half * 64, 0]
        tma.async_copy_global_to_shared(q, at, full.index(2 * STAGES), sq.index(half))
    for j in range(tiles):
        stage = j % STAGES
        phase = (j // STAGES & 1) ^ 1
        at = [own, (tiles - 1 - j) * BN, 0]
        mbarrier.wait(empty.index(stage), phase)
        mbarrier.expect(full.index(stage), k.block_type.nbytes)
        tma.async_copy_global_to_shared(k, at, full.index(stage), sk.index(stage))
        mbarrier.wait(empty.index(STAGES + stage), phase)
        mbarrier.expect(full.index(STAGES + stage), v.block_type.nbytes)
        tma.async_copy_global_to_shared(v, at, full.index(STAGES + stage), sv.index(stage))


@gluon.jit
def scored(queries, sk, full, j, zeros, WIDTH: gl.constexpr):
    """Start the product of the queries and a tile of keys."""
    stage = j % STAGES
    mbarrier.wait(full.index(stage), j // STAGES & 1)
    keys = sk.index(stage).reshape([BN, WIDTH]).permute([1, 0])
    return hopper.warpgroup_mma(queries, keys, zeros, use_acc=False, is_async=True)


@gluon.jit
def weighted(left, sv, full, j, total, WIDTH: gl.constexpr):
    """Start adding a tile's weighted values to the total."""
    stage = j % STAGES
    mbarrier.wait(full.index(STAGES + stage), j // STAGES & 1)
    values = sv.index(stage).reshape([BN, WIDTH])
    return hopper.warpgroup_mma(left, values, total, is_async=True)


@gluon.jit
def computing(
    shared, GROUP: gl.constexpr, HEAD: gl.constexpr, WIDTH: gl.constexpr, CAUSAL: gl.constexpr
):
    out, sq, sk, sv, full, empty, tile, head, tiles, count, scale, head_step, row_step = shared
    by_key: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    by_size: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, by_size, 2)
    rows: gl.constexpr = gl.SliceLayout(1, by_size)
    zeros = gl.zeros([64, BN], gl.float32, by_key)
    mbarrier.wait(full.index(2 * STAGES), 0)
    queries = sq.index(GROUP).reshape([64, WIDTH])
    scores = hopper.warpgroup_mma_wait(0, [scored(queries, sk, full, 0, zeros, WIDTH)])
    mbarrier.arrive(empty.index(0), count=1)
    column = (tiles - 1) * BN + gl.arange(0, BN, gl.SliceLayout(0, by_key))[None, :]
    row = tile * 128 + GROUP * 64 + gl.arange(0, 64, gl.SliceLayout(1, by_key))[:, None]
    seen = row >= column if CAUSAL else column < count
    scores = gl.where(seen, scores, -float("inf"))
    largest = gl.max(scores, 1) * scale
    weights = gl.exp2(scores * scale - largest[:, None])
    sums = gl.sum(weights, 1)
    left = gl.convert_layout(weights.to(gl.bfloat16), operand)
    total = gl.zeros([64, WIDTH], gl.float32, by_size)
    for j in range(1, tiles):
        score_token = scored(queries, sk, full, j, zeros, WIDTH)
        total_token = weighted(left, sv, full, j - 1, total, WIDTH)
        scores = hopper.warpgroup_mma_wait(1, [score_token])
        mbarrier.arrive(empty.index(j % STAGES), count=1)
        new = gl.maximum(largest, gl.max(scores, 1) * scale)
        shrunk = gl.exp2(largest - new)
        weights = gl.exp2(scores * scale - new[:, None])
        sums = sums * shrunk + gl.sum(weights, 1)
        largest = new
        total, left = hopper.warpgroup_mma_wait(0, [total_token, left])
        mbarrier.arrive(empty.index(STAGES + (j - 1) % STAGES), count=1)
        total = total * gl.convert_layout(shrunk, rows)[:, None]
        left = gl.convert_layout(weights.to(gl.bfloat16), operand)
    total = hopper.warpgroup_mma_wait(0, [weighted(left, sv, full, tiles - 1, total, WIDTH)])
    total = total / gl.convert_layout(sums, rows)[:, None]
    row = tile * 128 + GROUP * 64 + gl.arange(0, 64, rows)[:, None]
    inner = gl.arange(0, WIDTH, gl.SliceLayout(0, by_size))[None, :]
    at = head.to(gl.int64) * head_step + row.to(gl.int64) * row_step + inner
    gl.store(out + at, total.to(gl.bfloat16), (row < count) & (inner < HEAD))


@gluon.jit
def on_hopper(
    q, k, v, out, count, group, scale, head_step, row_step,
    HEAD: gl.constexpr, WIDTH: gl.constexpr, CAUSAL: gl.constexpr,
):  # fmt: skip
    tile, head = gl.num_programs(1) - 1 - gl.program_id(1), gl.program_id(0)
    seen = gl.minimum((tile + 1) * 128, count) if CAUSAL else count
    tiles = gl.cdiv(seen, BN)
    sq = gl.allocate_shared_memory(gl.bfloat16, [2, 1, 64, WIDTH], q.layout)
    sk = gl.allocate_shared_memory(gl.bfloat16, [STAGES, 1, BN, WIDTH], k.layout)
    sv = gl.allocate_shared_memory(gl.bfloat16, [STAGES, 1, BN, WIDTH], v.layout)
    flags: gl.constexpr = mbarrier.MBarrierLayout()
    full = gl.allocate_shared_memory(gl.int64, [2 * STAGES + 1, 1], flags)
    empty = gl.allocate_shared_memory(gl.int64, [2 * STAGES, 1], flags)
    for i in gl.static_range(2 * STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2)
    mbarrier.init(full.index(2 * STAGES), count=1)
    hopper.fence_async_shared()
    shared = (out, sq, sk, sv, full, empty, tile, head, tiles, count, scale, head_step, row_step)
    gl.warp_specialize(
        [
            (computing, (shared, 0, HEAD, WIDTH, CAUSAL)),
            (computing, (shared, 1, HEAD, WIDTH, CAUSAL)),
            (loading, (q, k, v, sq, sk, sv, full, empty, tile, head, head // group, tiles)),
        ],
        [4, 1],
        [240, 24],
    )


def tiles_of(x, rows, width):
    block = [1, rows, width]
    layout = gl.NVMMASharedLayout.get_default_for(block, gl.bfloat16)
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block, layout)


def suits(query, count, size, heads):
    """Whether `specialized` can run, and has enough work to be worthwhile."""
    is_hopper = torch.cuda.get_device_capability(query.device)[0] == 9
    possible = is_hopper and query.dtype is torch.bfloat16 and size % 8 == 0 and 32 < size <= 128
    return possible and triton.cdiv(count, 128) * heads >= 64 and (size > 64 or count >= 1024)


def specialized(query, key, value, causal):
    """Attention over (heads, tokens, size) views; keys and values may have fewer heads."""
    heads, count, size = query.shape
    width = 128 if size > 64 else 64
    out = torch.empty_strided(query.shape, query.stride(), dtype=query.dtype, device=query.device)
    on_hopper[(heads, triton.cdiv(count, 128))](
        tiles_of(query, 64, width), tiles_of(key, 128, width), tiles_of(value, 128, width), out,
        count, heads // key.shape[0], LOG2_E / math.sqrt(size), query.stride(0), query.stride(1),
        HEAD=size, WIDTH=width, CAUSAL=causal, num_warps=4,
    )  # fmt: skip
    return out


def forward(query, key, value):
    batch, heads, count, size = query.shape
    if suits(query, count, size, batch * heads):
        views = [x.flatten(0, 1) for x in (query, key, value)]
        return specialized(*views, causal=True).view(query.shape)
    out = torch.empty_like(query)
    width = max(16, triton.next_power_of_2(size))
    narrow = query.dtype is torch.bfloat16
    if narrow:
        BM, BN, stages, warps = (128, 128, 2, 8) if width > 64 else (128, 64, 3, 4)
    else:
        BM, BN, stages, warps = 64, 32, 2, 8 if width > 64 else 4
    if count <= 64:
        BM = 64
    attention[(triton.cdiv(count, BM), batch * heads)](
        query, key, value, out, count, heads // key.shape[1], LOG2_E / math.sqrt(size),
        HEAD=size, WIDTH=width, BM=BM, BN=BN, PRECISION="tf32" if narrow else "tf32x3",
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    return out
