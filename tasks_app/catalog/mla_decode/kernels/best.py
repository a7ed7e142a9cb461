"""One decoding step of multi-head latent attention, split along the tokens.

- A token's latent serves all heads as both key and value. Each program therefore takes up to 64
  heads: it reads a latent once, and tensor cores use it for both products.
- A score is the product of the latents plus that of the rotary parts. Each of the two widths is
  rounded up to a power of two.
- Sequence lengths vary widely. Each sequence is cut into pieces of a fixed number of tokens. The
  grid covers the longest possible sequence, and programs past a sequence's end exit at once.
- A running maximum rescales the accumulator and the running sum (online softmax). Pieces write all
  three as float32, and a second kernel combines the pieces of each sequence and head.
- Exponentials are base 2, like the hardware's instruction: log2(e) is folded into the scale of the
  scores.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def attention(
    parts, states, query, cache, table, lengths, scale, heads, latent, rope, page_size, max_pages,
    length, pieces,
    GROUP: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    piece, sequence = tl.program_id(0), tl.program_id(2)
    count = tl.load(lengths + sequence)
    begin = piece * length
    if begin < count:
        size = latent + rope
        head = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
        member = head < heads
        head += sequence * heads
        inner, turned = tl.arange(0, LATENT), tl.arange(0, ROPE)
        in_latent, in_rope = inner[None, :] < latent, turned[None, :] < rope
        row = query + head[:, None] * size
        q = tl.load(row + inner[None, :], member[:, None] & in_latent, other=0.0)
        q_turned = tl.load(row + latent + turned[None, :], member[:, None] & in_rope, other=0.0)
        largest = tl.full((GROUP,), -1.0e38, dtype=tl.float32)
        sums = tl.zeros((GROUP,), dtype=tl.float32)
        total = tl.zeros((GROUP, LATENT), dtype=tl.float32)
        end = min(begin + length, count)
        for first in range(begin, end, BN):
            token = first + tl.arange(0, BN)
            held = token < end
            page = tl.load(table + sequence * max_pages + token // page_size, held, other=0)
            slot = cache + (page.to(tl.int64) * page_size + token % page_size)[:, None] * size
            k = tl.load(slot + inner[None, :], held[:, None] & in_latent, other=0.0)
            k_turned = tl.load(slot + latent + turned[None, :], held[:, None] & in_rope, other=0.0)
            scores = tl.dot(q, tl.trans(k))
            scores = tl.dot(q_turned, tl.trans(k_turned), scores) * scale
            scores = tl.where(held[None, :], scores, -float("inf"))
            new = tl.maximum(largest, tl.max(scores, 1))
            weights = tl.exp2(scores - new[:, None])
            shrunk = tl.exp2(largest - new)
            sums = sums * shrunk + tl.sum(weights, 1)
            total = tl.dot(weights.to(k.dtype), k, total * shrunk[:, None])
            largest = new
        place = head * pieces + piece
        target = parts + place.to(tl.int64)[:, None] * latent + inner[None, :]
        tl.store(target, total, member[:, None] & in_latent)
        tl.store(states + 2 * place, largest, member)
        tl.store(states + 2 * place + 1, sums, member)


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
    query, cache, page_table, lengths, batch, num_heads, latent_dim, rope_dim, page_size,
    max_pages, scale,
):  # fmt: skip
    processors = torch.cuda.get_device_properties(query.device).multi_processor_count
    group = min(64, max(16, triton.next_power_of_2(num_heads)))
    groups = triton.cdiv(num_heads, group)
    longest = max_pages * page_size
    # Aim for a few pieces per multiprocessor, with at least 256 tokens each.
    mean = longest * batch * groups // (2 * 2 * processors)
    length = max(256, min(8192, triton.cdiv(mean, 128) * 128))
    pieces = triton.cdiv(longest, length)
    out = torch.empty(batch, num_heads, latent_dim, device=query.device, dtype=query.dtype)
    parts = torch.empty(batch * num_heads, pieces, latent_dim, device=query.device)
    states = torch.empty(batch * num_heads, pieces, 2, device=query.device)
    latent = max(16, triton.next_power_of_2(latent_dim))
    attention[(pieces, groups, batch)](
        parts, states, query, cache, page_table, lengths, scale * LOG2_E, num_heads, latent_dim,
        rope_dim, page_size, max_pages, length, pieces, GROUP=group, LATENT=latent,
        ROPE=max(16, triton.next_power_of_2(rope_dim)), BN=32,
        num_warps=8 if group * latent >= 16384 else 4, num_stages=2,
    )  # fmt: skip
    put_together[(batch * num_heads,)](
        out, parts, states, lengths, num_heads, latent_dim, length, pieces,
        PIECES=triton.next_power_of_2(pieces), WIDTH=latent, num_warps=4,
    )  # fmt: skip
    return out
