"""Layer normalization of a single vector.

- A vector of up to 16384 elements is handled by one program, which keeps it in registers: it is
  read once and needs only one kernel launch.
- A longer vector is read twice, the second time mostly from the L2 cache. In the first kernel, each
  program computes the mean of one part and the sum of squared deviations from it. In the second
  kernel, each program combines the results of all parts and writes one part.
- Deviations are taken from each part's own mean, and the parts are combined by how far their means
  lie from the overall mean. Nothing subtracts a squared mean, which would suffer from cancellation
  if the mean is large.
- All arithmetic is float32, even for BF16, and each result is rounded once.
- Threads load and store 16 bytes at a time if the length is a multiple of 16.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

WHOLE = 16384  # the longest vector that a program holds in registers


@triton.jit
def normalized(out, x, weight, bias, epsilon, N, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    held = at < N
    value = tl.load(x + at, held, other=0.0).to(tl.float32)
    factor = tl.load(weight + at, held, other=0.0).to(tl.float32)
    term = tl.load(bias + at, held, other=0.0).to(tl.float32)
    value = tl.where(held, value - tl.sum(value, 0) / N, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, 0) / N + epsilon)
    tl.store(out + at, (value * scale * factor + term).to(out.dtype.element_ty), held)


@triton.jit
def statistics(found, x, N, BLOCK: tl.constexpr):
    """A part's mean, and its sum of squared deviations from that mean."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < N, other=0.0).to(tl.float32)
    count = min(BLOCK, N - tl.program_id(0) * BLOCK)
    mean = tl.sum(value, 0) / count
    value = tl.where(at < N, value - mean, 0.0)
    tl.store(found + 2 * tl.program_id(0), mean)
    tl.store(found + 2 * tl.program_id(0) + 1, tl.sum(value * value, 0))


@triton.jit
def scaled(
    out, x, weight, bias, found, epsilon, N, parts, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    held = at < N
    value = tl.load(x + at, held, other=0.0).to(tl.float32)
    factor = tl.load(weight + at, held, other=0.0).to(tl.float32)
    term = tl.load(bias + at, held, other=0.0).to(tl.float32)
    every = tl.arange(0, PARTS)
    means = tl.load(found + 2 * every, every < parts, other=0.0)
    spreads = tl.load(found + 2 * every + 1, every < parts, other=0.0)
    counts = tl.where(every < parts, tl.minimum(BLOCK, N - every * BLOCK), 0).to(tl.float32)
    mean = tl.sum(means * counts, 0) / N
    apart = means - mean
    variance = tl.sum(spreads + counts * apart * apart, 0) / N
    result = (value - mean) * (1.0 / tl.sqrt(variance + epsilon)) * factor + term
    tl.store(out + at, result.to(out.dtype.element_ty), held)


def forward(input, weight, bias, epsilon, N):
    out = torch.empty_like(input)
    if N <= WHOLE:
        block = triton.next_power_of_2(N)
        normalized[(1,)](
            out, input, weight, bias, epsilon, N, BLOCK=block,
            num_warps=min(32, max(1, block // 256)),
        )  # fmt: skip
        return out
    part = 2048 if N <= 2**21 else 8192
    parts = triton.cdiv(N, part)
    found = torch.empty(parts, 2, device=input.device)
    statistics[(parts,)](found, input, N, BLOCK=part, num_warps=8)
    scaled[(parts,)](
        out, input, weight, bias, found, epsilon, N, parts,
        PARTS=triton.next_power_of_2(parts), BLOCK=part, num_warps=8,
    )  # fmt: skip
    return out
