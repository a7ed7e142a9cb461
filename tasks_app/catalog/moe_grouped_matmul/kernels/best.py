"""Grouped matrix product for a mixture of experts in one launch, on BF16 tensor cores.

- Only the device knows how many rows each expert has. Each program counts the tiles of all experts
  from `offsets`, and finds its own expert in the running sum of these counts. The grid covers the
  largest possible number of tiles, and programs without a tile exit at once.
- The weights form the rows of a tile and the expert's rows its columns. `wgmma` needs 64 rows, but
  as few as eight columns, so an expert with a handful of rows wastes little work.
- Tiles with the same weights run next to each other, so these weights stay in the L2 cache.
- The TMA prefetches tiles into shared memory a few steps ahead. Rows that it reads from a
  neighboring expert aren't stored. Rows whose length isn't a multiple of 16 bytes are first copied
  to zero-padded rows.
- With few rows overall, split-K spreads the input dimension over more programs, and a second kernel
  adds up the partial sums.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def product(
    w, x, out, offsets, num_rows, experts, features, size,
    BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    EXPERTS: tl.constexpr,
):  # fmt: skip
    every = tl.arange(0, EXPERTS)
    begins = tl.load(offsets + every, every < experts, other=0)
    ends = tl.load(offsets + every + 1, every < experts, other=0)
    panels = tl.cdiv(features, BN)
    counts = (ends - begins + BM - 1) // BM
    lasts = tl.cumsum(counts, 0)
    # An expert's tiles go panel by panel, and within a panel by groups of BM rows.
    item = tl.program_id(0)
    expert = tl.sum((lasts * panels <= item).to(tl.int32), 0)
    if expert < experts:
        count = tl.sum(tl.where(every == expert, counts, 0), 0)
        begin = tl.sum(tl.where(every == expert, begins, 0), 0)
        end = tl.sum(tl.where(every == expert, ends, 0), 0)
        item -= (tl.sum(tl.where(every == expert, lasts, 0), 0) - count) * panels
        first = begin + item % count * BM
        panel = item // count
        part = tl.program_id(1)
        steps = tl.cdiv(tl.cdiv(size, BK), SPLIT)
        total = tl.zeros((BN, BM), dtype=tl.float32)
        for k in range(part * steps, min(part * steps + steps, tl.cdiv(size, BK))):
            weights = w.load([expert * features + panel * BN, k * BK])
            values = x.load([first, k * BK])
            total = tl.dot(weights, values.T, total)
        n = panel * BN + tl.arange(0, BN)
        m = first + tl.arange(0, BM)
        at = (part.to(tl.int64) * num_rows + m[None, :]) * features + n[:, None]
        held = (n[:, None] < features) & (m[None, :] < end)
        tl.store(out + at, total.to(out.dtype.element_ty), held)


@triton.jit
def sum_of_parts(parts, out, count, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    source = parts + at
    for _ in tl.static_range(SPLIT):
        total += tl.load(source, at < count, other=0.0)
        source += count
    tl.store(out + at, total.to(out.dtype.element_ty), at < count)


@triton.jit
def widen(x, out, width, new_width, BLOCK: tl.constexpr):
    """Copy rows to wider ones, padded with zeros."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    value = tl.load(x + row * width + at, at < width, other=0.0)
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


def plan_of(num_rows, experts, features, size, processors):
    """A tile's rows, columns and depth; stages; warps; splits of the inputs."""
    mean = num_rows / experts
    if mean > 128:
        return 128, 256, 64, 3, 8, 1
    if mean > 48:
        return 128, 128, 64, 4, 8, 1
    if mean > 12:
        return 128, 64, 64, 4, 4, 1
    tiles, split = triton.cdiv(features, 64) * min(experts, num_rows), 1
    while split < 16 and tiles * split < 4 * processors and size // (2 * split) >= 1024:
        split *= 2
    return 64, 16, 128, 5, 4, split


def forward(x, weights, offsets, num_rows, num_experts, in_features, out_features):
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    plan = plan_of(num_rows, num_experts, out_features, in_features, processors)
    BN, BM, BK, stages, warps, split = plan
    # Each expert may end with a partial tile.
    groups = min(num_rows, triton.cdiv(num_rows, BM) + num_experts)
    out = torch.empty(num_rows, out_features, device=x.device, dtype=x.dtype)
    parts = out
    if split > 1:
        parts = torch.empty(split, num_rows, out_features, device=x.device)
    flat = weights.view(num_experts * out_features, in_features)
    product[(triton.cdiv(out_features, BN) * groups, split)](
        TensorDescriptor.from_tensor(aligned(flat, 8), [BN, BK]),
        TensorDescriptor.from_tensor(aligned(x, 8), [BM, BK]),
        parts, offsets, num_rows, num_experts, out_features, in_features,
        BN=BN, BM=BM, BK=BK, SPLIT=split, EXPERTS=triton.next_power_of_2(num_experts + 1),
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    if split > 1:
        count = num_rows * out_features
        sum_of_parts[(triton.cdiv(count, 512),)](parts, out, count, SPLIT=split, BLOCK=512)
    return out
