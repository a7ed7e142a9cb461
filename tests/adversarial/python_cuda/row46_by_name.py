# row: 46, 48
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: ranked
# stopped by: quarantine work
# tries: to find the framework's product among its operations by a name that stands nowhere.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

operations = getattr(torch.ops, "at" + "en")


@triton.jit
def shown(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < count), mask=at < count)


def forward(A, B, M, N, K):
    return getattr(operations, "m" * 2)(A, B)
