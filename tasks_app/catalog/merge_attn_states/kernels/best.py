"""Merge of two attention states, limited by memory bandwidth.

- Each program handles some heads of one token: it reads their LSEs once, computes both weights and
  merges the vectors, with loads and stores of up to 16 bytes per thread.
- The larger LSE is subtracted before `exp`, which therefore can't overflow. An infinite LSE of
  either sign marks an empty state: it is treated as -inf, so its weight is 0 and its vector isn't
  read. If both states are empty, the weights are 0 and the merged LSE is -inf.
- The weights, their sum and the merged vector are float32, even for BF16, and each result is
  rounded once.
- The block size is the vector size rounded up to a power of two, with the excess masked. A program
  takes one long vector or several short ones, so that it always has enough to load.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def merged(
    out, lse_out, a, lse_a, b, lse_b, tokens, heads, size, HEADS: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    held = head < heads
    place = head * tokens + token
    low = -float("inf")
    first = tl.load(lse_a + place, held, other=0.0).to(tl.float32)
    second = tl.load(lse_b + place, held, other=0.0).to(tl.float32)
    first = tl.where(tl.abs(first) == float("inf"), low, first)
    second = tl.where(tl.abs(second) == float("inf"), low, second)
    largest = tl.maximum(first, second)
    empty = largest == low
    largest = tl.where(empty, 0.0, largest)
    first_power, second_power = tl.exp(first - largest), tl.exp(second - largest)
    total = first_power + second_power
    share = 1.0 / tl.where(empty, 1.0, total)
    lse = tl.where(empty, low, largest + tl.log(tl.where(empty, 1.0, total)))
    tl.store(lse_out + place, lse.to(lse_out.dtype.element_ty), held)
    inner = tl.arange(0, BLOCK)
    at = (token.to(tl.int64) * heads + head[:, None]) * size + inner[None, :]
    inside = held[:, None] & (inner[None, :] < size)
    in_first = inside & (first_power[:, None] > 0.0)
    in_second = inside & (second_power[:, None] > 0.0)
    result = tl.load(a + at, in_first, other=0.0).to(tl.float32) * (first_power * share)[:, None]
    other = tl.load(b + at, in_second, other=0.0).to(tl.float32) * (second_power * share)[:, None]
    tl.store(out + at, (result + other).to(out.dtype.element_ty), inside)


def forward(V_a, lse_a, V_b, lse_b, num_tokens, num_heads, head_size):
    out, lse_out = torch.empty_like(V_a), torch.empty_like(lse_a)
    block = triton.next_power_of_2(head_size)
    count = min(max(1, 4096 // block), triton.next_power_of_2(num_heads))
    merged[(num_tokens, triton.cdiv(num_heads, count))](
        out, lse_out, V_a, lse_a, V_b, lse_b, num_tokens, num_heads, head_size,
        HEADS=count, BLOCK=block, num_warps=min(8, max(1, count * block // 512)),
    )  # fmt: skip
    return out, lse_out
