"""One-dimensional convolution as a matrix product on tensor cores.

- The output is cut into rows of 64 (or 32) elements. Each row is the product of the stretch of
  input that it depends on and a matrix. Each column of the matrix holds the kernel, one place
  further down than in the column before. All rows share this matrix, and read their overlapping
  stretches of input in place, so nothing is copied.
- Some of these multiplications are by zero, but tensor cores more than make up for that.
- FP32: each number is split into two TF32 numbers, and every product of their parts is computed
  except that of the two small parts. BF16 is multiplied directly. Sums are float32.
- Small inputs use smaller tiles, so that the work still spreads over the whole GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PLANS = ((64, 64), (32, 64), (16, 64), (16, 32))  # a tile's rows and their length
DEEP = 32
ENOUGH = 120  # programs: about one for each multiprocessor


@triton.jit
def correlated(
    out, x, kernel, count, size, taps,
    ROWS: tl.constexpr, LENGTH: tl.constexpr, DEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0).to(tl.int64) * (ROWS * LENGTH)
    row = first + tl.arange(0, ROWS) * LENGTH
    place = tl.arange(0, LENGTH)
    total = tl.zeros((ROWS, LENGTH), dtype=tl.float32)
    for begin in range(0, taps + LENGTH - 1, DEEP):
        inner = begin + tl.arange(0, DEEP)
        at = row[:, None] + inner[None, :]
        seen = tl.load(x + at, at < size, other=0.0)
        tap = inner[:, None] - place[None, :]
        weight = tl.load(kernel + tap, (tap >= 0) & (tap < taps), other=0.0)
        total = tl.dot(seen, weight, total, input_precision=PRECISION)
    at = row[:, None] + place[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), at < count)


def forward(input, kernel, input_size, kernel_size):
    count = input_size - kernel_size + 1
    out = torch.empty(count, device=input.device, dtype=input.dtype)
    for rows, length in PLANS:
        if triton.cdiv(count, rows * length) >= ENOUGH:
            break
    correlated[(triton.cdiv(count, rows * length),)](
        out, input, kernel, count, input_size, kernel_size,
        ROWS=rows, LENGTH=length, DEEP=DEEP,
        PRECISION="tf32" if input.dtype is torch.bfloat16 else "tf32x3", num_stages=3,
    )  # fmt: skip
    return out
