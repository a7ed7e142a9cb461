# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to compile CUDA of its own by load_inline.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <c10/cuda/CUDAStream.h>

__global__ void add(const float* a, const float* b, float* c, int64_t count) {
  int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

void run(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  int64_t count = a.numel();
  add<<<(count + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), count);
}
"""
DECLARED = "void run(torch::Tensor a, torch::Tensor b, torch::Tensor c);"
own = load_inline("own_add", DECLARED, CUDA, functions=["run"])


def forward(A, B, N):
    out = torch.empty_like(A)
    own.run(A, B, out)
    return out
