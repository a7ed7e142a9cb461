"""A sum of two vectors by a kernel in Triton, as anybody would write it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < count
    x = tl.load(a + at, mask=is_inside)
    y = tl.load(b + at, mask=is_inside)
    tl.store(c + at, x + y, mask=is_inside)


def triton_add(A, B, out=None):
    """The honest work of vector_add."""
    out = torch.empty_like(A) if out is None else out
    count = A.numel()
    add_kernel[(triton.cdiv(count, 1024),)](A, B, out, count, BLOCK=1024)
    return out
