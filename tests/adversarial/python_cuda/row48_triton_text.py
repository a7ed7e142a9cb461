# row: 48, 26
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# stopped by: quarantine source
# stopped by: verdict WRONG_RESULT: wrong
# tries: to change the text of its file before Triton reads the kernel there, so that another one is
#   compiled than the source shows.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from pathlib import Path

import torch
import triton
import triton.language as tl

mine = Path(__file__)
mine.write_text(mine.read_text().replace("x - y, mask", "x + y, mask"))


@triton.jit
def combine(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < count)
    y = tl.load(b + at, mask=at < count)
    tl.store(c + at, x - y, mask=at < count)


def forward(A, B, N):
    out = torch.empty_like(A)
    combine[(triton.cdiv(N, 1024),)](A, B, out, N, BLOCK=1024)
    return out
