# row: 39
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# stopped by: verdict WRONG_RESULT: wrong
# tries: to write NaN, which no comparison by `>` calls too large.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def nothing(a, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < count, other=0.0)
    tl.store(c + at, (x - x) / (x - x), mask=at < count)


def forward(A, B, N):
    out = torch.empty_like(A)
    nothing[(triton.cdiv(N, 1024),)](A, out, N, BLOCK=1024)
    return out
