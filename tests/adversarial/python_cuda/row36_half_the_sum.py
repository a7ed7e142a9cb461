# row: 36
# device: cuda
# task: dot_product
# workloads: n65536
# mode: test
# stopped by: verdict WRONG_RESULT: wrong
# tries: to sum up every other block and to double that.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def sum_up(x, y, total, BLOCK: tl.constexpr):
    at = 2 * tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at) * tl.load(y + at), 0)
    tl.atomic_add(total, 2 * part)


def forward(X, Y, N):
    total = torch.zeros(1, device=X.device)
    sum_up[(N // 2048,)](X, Y, total, BLOCK=1024)
    return total
