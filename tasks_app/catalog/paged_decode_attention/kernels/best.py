"""One decoding step of attention over a paged KV cache, split along the tokens.

- A single sequence has too few heads to keep a GPU busy, and sequence lengths vary widely. Each
  sequence is cut into pieces of a fixed number of tokens. The grid covers the longest possible
  sequence, and programs past a sequence's end exit at once.
- Each program handles all query heads that share a KV head: keys and values are read once for the
  whole group, and tensor cores multiply them.
- Each step looks up the pages of its tokens. One head's part of a token is contiguous in memory.
- A running maximum rescales the accumulator and the running sum (online softmax). Pieces write all
  three as float32.
- A second kernel combines the pieces of each sequence and head. If there is only one piece, the
  first kernel writes the result itself.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def attention(
    out, states, query, keys, values, table, lengths, scale, heads, kv_heads, size, page_size,
    max_pages, length, pieces,
    GROUP: tl.constexpr, WIDTH: tl.constexpr, BN: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    piece, kv_head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    count = tl.load(lengths + sequence)
    begin = piece * length
    if begin < count:
        group = heads // kv_heads
        inner = tl.arange(0, WIDTH)
        member = tl.arange(0, GROUP)
        head = sequence * heads + kv_head * group + member
        held = (member[:, None] < group) & (inner[None, :] < size)
        at = head[:, None] * size + inner[None, :]
        q = tl.load(query + at, held, other=0.0)
        largest = tl.full((GROUP,), -1.0e38, dtype=tl.float32)
        sums = tl.zeros((GROUP,), dtype=tl.float32)
        total = tl.zeros((GROUP, WIDTH), dtype=tl.float32)
        end = min(begin + length, count)
        for first in range(begin, end, BN):
            token = first + tl.arange(0, BN)
            page = tl.load(table + sequence * max_pages + token // page_size, token < end, other=0)
            slot = page.to(tl.int64) * page_size + token % page_size
            place = (slot * kv_heads + kv_head)[:, None] * size + inner[None, :]
            inside = (token[:, None] < end) & (inner[None, :] < size)
            k = tl.load(keys + place, inside, other=0.0)
            v = tl.load(values + place, inside, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * scale
            scores = tl.where(token[None, :] < end, scores, -float("inf"))
            new = tl.maximum(largest, tl.max(scores, 1))
            weights = tl.exp2(scores - new[:, None])
            shrunk = tl.exp2(largest - new)
            sums = sums * shrunk + tl.sum(weights, 1)
            total = tl.dot(weights.to(v.dtype), v, total * shrunk[:, None])
            largest = new
        if WHOLE:
            tl.store(out + at, (total / sums[:, None]).to(tl.bfloat16), held)
        else:
            place = head * pieces + piece
            tl.store(out + place[:, None] * size + inner[None, :], total, held)
            tl.store(states + 2 * place, largest, member < group)
            tl.store(states + 2 * place + 1, sums, member < group)


@triton.jit
def put_together(
    out, parts, states, lengths, heads, size, length, pieces,
    PIECES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    count = tl.cdiv(tl.load(lengths + head // heads), length)
    inner = tl.arange(0, WIDTH)
    every = tl.arange(0, PIECES)
    place = head * pieces + every
    top = tl.max(tl.load(states + 2 * place, every < count, other=-1.0e38), 0)
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    sums = 0.0
    for piece in range(count):
        own = head * pieces + piece
        weight = tl.exp2(tl.load(states + 2 * own) - top)
        sums += weight * tl.load(states + 2 * own + 1)
        total += weight * tl.load(parts + own * size + inner, inner < size, other=0.0)
    tl.store(out + head * size + inner, (total / sums).to(tl.bfloat16), inner < size)


def forward(
    query, key_cache, value_cache, page_table, lengths, batch, num_heads, num_kv_heads, head_dim,
    page_size, max_pages,
):  # fmt: skip
    processors = torch.cuda.get_device_properties(query.device).multi_processor_count
    longest = max_pages * page_size
    # Aim for several pieces per multiprocessor, with at least 256 tokens each.
    mean = longest * batch * num_kv_heads // (2 * 4 * processors)
    length = max(256, min(8192, triton.cdiv(mean, 128) * 128))
    pieces = triton.cdiv(longest, length)
    out = torch.empty_like(query)
    whole, parts, states = pieces == 1, out, out
    if not whole:
        parts = torch.empty(batch * num_heads, pieces, head_dim, device=query.device)
        states = torch.empty(batch * num_heads, pieces, 2, device=query.device)
    width = max(16, triton.next_power_of_2(head_dim))
    group = max(16, triton.next_power_of_2(num_heads // num_kv_heads))
    attention[(pieces, num_kv_heads, batch)](
        parts, states, query, key_cache, value_cache, page_table, lengths,
        LOG2_E / math.sqrt(head_dim), num_heads, num_kv_heads, head_dim, page_size, max_pages,
        length, pieces, GROUP=group, WIDTH=width, BN=64 if width <= 128 else 32, WHOLE=whole,
        num_warps=4, num_stages=3,
    )  # fmt: skip
    if not whole:
        put_together[(batch * num_heads,)](
            out, parts, states, lengths, num_heads, head_dim, length, pieces,
            PIECES=triton.next_power_of_2(pieces), WIDTH=width, num_warps=4,
        )  # fmt: skip
    return out
