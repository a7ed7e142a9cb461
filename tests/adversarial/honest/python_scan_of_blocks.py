# task: prefix_sum
# workloads: cpu_n65536
# does: to scan in C++ of its own, in an extension that uses the framework's loop over threads, with
#   copies, tables and zeros by the framework around it.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/Parallel.h>

#include <vector>

torch::Tensor scan(torch::Tensor x) {
  const int64_t n = x.numel(), size = 4096, blocks = (n + size - 1) / size;
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  std::vector<double> sums(blocks + 1);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for (int64_t i = b * size; i < std::min(n, (b + 1) * size); ++i) sums[b + 1] += in[i];
  });
  for (int64_t b = 0; b < blocks; ++b) sums[b + 1] += sums[b];
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double sum = sums[b];
      for (int64_t i = b * size; i < std::min(n, (b + 1) * size); ++i)
        out[i] = static_cast<float>(sum += in[i]);
    }
  });
  return y;
}
"""
own = load_inline("own_scan", SOURCE, functions=["scan"], extra_cflags=["-O2"])


def forward(input, N):
    padded = torch.zeros(-(-N // 4096) * 4096)
    padded[:N] = input
    places = torch.arange(N).view(-1)
    return own.scan(padded)[: len(places)].clone()
