"""Residual sum, RMS normalization and quantization to FP8 in one pass.

- A program holds a row in registers: `x` and `residual` are read once, and the sum, the quantized
  row and its scale are written once. The three steps cost no more memory than their results.
- What is normalized is the sum in float32, before it's rounded for `residual`.
- The largest size of a row sets its scale, which is never below the least one. Numbers are
  multiplied by one over the scale, kept to the range of e4m3, and rounded to nearest.
- A row is loaded as a power of two, of which the rest is masked; a thread loads 16 bytes at a time
  where rows are aligned.
- Warps grow with the row, so that a thread holds a few dozen numbers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

LARGEST = tl.constexpr(448.0)
LEAST_SCALE = tl.constexpr(1.0 / (448.0 * 512.0))


@triton.jit
def quantized(out, scales, new_residual, x, residual, weight, size, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    held = at < size
    begin = row * size
    total = tl.load(x + begin + at, held, other=0.0).to(tl.float32)
    total += tl.load(residual + begin + at, held, other=0.0).to(tl.float32)
    factor = tl.load(weight + at, held, other=0.0).to(tl.float32)
    tl.store(new_residual + begin + at, total.to(tl.bfloat16), held)
    norm = total * (1.0 / tl.sqrt(tl.sum(total * total, 0) / size + epsilon)) * factor
    scale = tl.maximum(tl.max(tl.abs(norm), 0) / LARGEST, LEAST_SCALE)
    number = norm * (1.0 / scale)
    number = tl.minimum(tl.maximum(number, -LARGEST), LARGEST)
    tl.store(out + begin + at, number.to(tl.float8e4nv), held)
    tl.store(scales + row, scale)


def forward(x, residual, weight, num_tokens, hidden_size, epsilon):
    out = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    new_residual = torch.empty_like(x)
    scales = torch.empty(num_tokens, device=x.device)
    block = triton.next_power_of_2(hidden_size)
    quantized[(num_tokens,)](
        out, scales, new_residual, x, residual, weight, hidden_size, epsilon, BLOCK=block,
        num_warps=min(16, max(1, block // 512)),
    )  # fmt: skip
    return new_residual, out, scales
