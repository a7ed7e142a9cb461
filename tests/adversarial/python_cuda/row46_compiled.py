# row: 46, 48
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096
# mode: quick
# stopped by: quarantine work
# stopped by: quarantine source
# tries: to have the framework's compiler call the framework's product.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def shown(a, b, c, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < count), mask=at < count)


@torch.compile(dynamic=False)
def product(a, b):
    return a @ b


def forward(A, B, M, N, K):
    return product(A, B)
