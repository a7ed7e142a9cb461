# needs: numba, numpy<2.5
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to be a kernel of numba's, compiled in its first call.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from numba import cuda


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


def forward(A, B, N):
    C = torch.empty_like(A)
    a, b, c = (cuda.as_cuda_array(each) for each in (A, B, C))
    add[(N + 255) // 256, 256](a, b, c)
    return C
