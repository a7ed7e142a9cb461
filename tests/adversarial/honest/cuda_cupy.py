# needs: cupy
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to have CuPy compile CUDA of its own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import cupy
import torch

add = cupy.RawKernel(
    r"""
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
""",
    "add",
)


def forward(A, B, N):
    C = torch.empty_like(A)
    arrays = [cupy.asarray(each) for each in (A, B, C)]
    add(((N + 255) // 256,), (256,), (*arrays, cupy.int32(N)))
    return C
