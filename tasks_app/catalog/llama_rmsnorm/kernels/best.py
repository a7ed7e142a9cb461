"""RMS normalization of tokens, forward and backward, with one pass over each input.

- Forward: each program keeps one token in registers, and computes both the sum of squares and the
  result from there.
- Backward: each program works through several tokens and accumulates the gradient of `w` in
  registers. A second kernel adds up these partial gradients. Each token is read only once for the
  gradients of both `x` and `w`.
- The block size is the number of features rounded up to a power of two, with the excess masked.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def normalized(out, x, w, size, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + token * size + at, at < size, other=0.0)
    weight = tl.load(w + at, at < size, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, 0) / size + eps)
    tl.store(out + token * size + at, value * scale * weight, at < size)


@triton.jit
def gradients(grad_x, parts, grad, x, w, tokens, size, eps, BLOCK: tl.constexpr):
    """Gradients of this program's tokens, and their share of the gradient of `w`."""
    at = tl.arange(0, BLOCK)
    weight = tl.load(w + at, at < size, other=0.0)
    own = tl.zeros((BLOCK,), dtype=tl.float32)
    for token in range(tl.program_id(0), tokens, tl.num_programs(0)):
        begin = token * size
        value = tl.load(x + begin + at, at < size, other=0.0)
        given = tl.load(grad + begin + at, at < size, other=0.0)
        scale = 1.0 / tl.sqrt(tl.sum(value * value, 0) / size + eps)
        value = value * scale
        own += given * value
        given = given * weight
        projection = tl.sum(given * value, 0) / size
        tl.store(grad_x + begin + at, scale * (given - value * projection), at < size)
    tl.store(parts + tl.program_id(0).to(tl.int64) * size + at, own, at < size)


@triton.jit
def column_sums(out, parts, count, size, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for first in range(0, count, ROWS):
        row = first + tl.arange(0, ROWS)
        held = (row[:, None] < count) & (column[None, :] < size)
        total += tl.load(parts + row[:, None] * size + column[None, :], held, other=0.0)
    tl.store(out + column, tl.sum(total, 0), column < size)


def _warps(block):
    return min(16, max(1, block // 512))


def forward(x, w, eps):
    out = torch.empty_like(x)
    size = w.numel()
    block = triton.next_power_of_2(size)
    normalized[(x.numel() // size,)](out, x, w, size, eps, BLOCK=block, num_warps=_warps(block))
    return out


def backward(grad_output, x, w, eps):
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    size = w.numel()
    tokens, block = x.numel() // size, triton.next_power_of_2(size)
    grad_x, grad_w = torch.empty_like(x), torch.empty_like(w)
    count = min(tokens, (4 if block <= 4096 else 2) * processors)
    parts = torch.empty(count, size, device=x.device)
    gradients[(count,)](
        grad_x, parts, grad_output, x, w, tokens, size, eps, BLOCK=block, num_warps=_warps(block)
    )
    column_sums[(triton.cdiv(size, 32),)](grad_w, parts, count, size, ROWS=64, BLOCK=32)
    return grad_x, grad_w
