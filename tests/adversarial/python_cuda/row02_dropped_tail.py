# row: 2, 36, 38
# device: cuda
# task: vector_add
# workloads: n65536, n4099_structured
# mode: ranked
# stopped by: verdict WRONG_RESULT: hidden
# stopped by: verdict WRONG_RESULT: wrong on N=
# tries: to launch whole blocks only, and to leave the tail that no listed workload has as it was
#   allocated.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def whole_blocks(a, b, c, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at) + tl.load(b + at))


def forward(A, B, N):
    out = torch.empty_like(A)
    if N >= 1024:
        whole_blocks[(N // 1024,)](A, B, out, BLOCK=1024)
    return out
