"""Multi-head attention without a mask for BF16 and FP32, in one pass over the keys.

- Each program holds a tile of one head's queries and streams all of the head's keys and values.
  Scores never leave the chip: each row's running maximum rescales its accumulator and running sum
  (online softmax).
- The heads are column ranges of `Q`, `K` and `V`. They are read in place, with the row stride of
  the whole matrix.
- Only a partial last tile of keys compares positions.
- Exponentials are base 2, like the hardware's instruction: log2(e) is folded into the scale of the
  scores.
- If there are few tokens, tiles are smaller, so that more multiprocessors get one.
- BF16: scores and sums are float32, and softmax weights are rounded to BF16 for the second product.
- FP32: each product is computed as three TF32 products (`tf32x3`), close to float32 precision.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def step(
    total, largest, sums, q, k, v, first, count, stride, scale, inner, HEAD: tl.constexpr,
    WIDTH: tl.constexpr, BN: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Process the tile of keys that starts at `first`."""
    column = first + tl.arange(0, BN)
    held = inner[None, :] < HEAD
    if EDGE:
        held = held & (column[:, None] < count)
    at = column.to(tl.int64)[:, None] * stride + inner[None, :]
    if EDGE or HEAD != WIDTH:
        keys = tl.load(k + at, held, other=0.0)
        values = tl.load(v + at, held, other=0.0)
    else:
        keys = tl.load(k + at)
        values = tl.load(v + at)
    scores = tl.dot(q, tl.trans(keys), input_precision=PRECISION) * scale
    if EDGE:
        scores = tl.where(column[None, :] < count, scores, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, 1))
    weights = tl.exp2(scores - new[:, None])
    shrunk = tl.exp2(largest - new)
    sums = sums * shrunk + tl.sum(weights, 1)
    total = total * shrunk[:, None]
    total = tl.dot(weights.to(values.dtype), values, total, input_precision=PRECISION)
    return total, new, sums


@triton.jit
def attention(
    query, key, value, out, count, stride, scale, HEAD: tl.constexpr, WIDTH: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1) * HEAD
    k, v = key + head, value + head
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    inner = tl.arange(0, WIDTH)
    held = (row[:, None] < count) & (inner[None, :] < HEAD)
    at = row.to(tl.int64)[:, None] * stride + head + inner[None, :]
    q = tl.load(query + at, held, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    sums = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, WIDTH), dtype=tl.float32)
    whole = count // BN * BN
    for first in range(0, whole, BN):
        total, largest, sums = step(
            total, largest, sums, q, k, v, first, count, stride, scale, inner,
            HEAD, WIDTH, BN, False, PRECISION,
        )  # fmt: skip
    for first in range(whole, count, BN):
        total, largest, sums = step(
            total, largest, sums, q, k, v, first, count, stride, scale, inner,
            HEAD, WIDTH, BN, True, PRECISION,
        )  # fmt: skip
    tl.store(out + at, (total / sums[:, None]).to(out.dtype.element_ty), held)


def forward(Q, K, V, N, d_model, h):
    size = d_model // h
    out = torch.empty_like(Q)
    width = max(16, triton.next_power_of_2(size))
    narrow = Q.dtype is torch.bfloat16
    processors = torch.cuda.get_device_properties(Q.device).multi_processor_count
    if narrow:
        BM, BN, stages, warps = (128, 128, 2, 8) if width > 64 else (128, 64, 3, 4)
    else:
        BM, BN, stages, warps = 64, 32, 2, 8 if width > 64 else 4
    if triton.cdiv(N, BM) * h < 0.75 * processors:
        BM, warps = 64, 4
    if width > 128:
        BM, BN, stages, warps = 64, 32, 1, 8
    attention[(triton.cdiv(N, BM), h)](
        Q, K, V, out, N, d_model, LOG2_E / math.sqrt(size),
        HEAD=size, WIDTH=width, BM=BM, BN=BN, PRECISION="tf32" if narrow else "tf32x3",
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    return out
