# task: softmax
# workloads: cpu_n64_c1024
# does: to write its loops with the framework's vectors, whose exponential is a function of the
#   framework's library, after it has put rows on top of each other by `vstack`.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/cpu/vec/vec.h>

#include <cmath>

using Vector = at::vec::Vectorized<float>;

torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int64_t columns = x.size(1), whole = columns / Vector::size() * Vector::size();
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* in = x.data_ptr<float>() + r * columns;
    float* out = y.data_ptr<float>() + r * columns;
    float largest = in[0], sum = 0.0f;
    for (int64_t c = 1; c < columns; ++c) largest = std::max(largest, in[c]);
    for (int64_t c = 0; c < whole; c += Vector::size())
      (Vector::loadu(in + c) - Vector(largest)).exp().store(out + c);
    for (int64_t c = whole; c < columns; ++c) out[c] = std::exp(in[c] - largest);
    for (int64_t c = 0; c < columns; ++c) sum += out[c];
    for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
  }
  return y;
}
"""
FLAGS = ["-O2", "-mavx2", "-mfma", "-DCPU_CAPABILITY=AVX2", "-DCPU_CAPABILITY_AVX2"]
own = load_inline("own_vectors", SOURCE, functions=["softmax"], extra_cflags=FLAGS)


def forward(input, N, C):
    rows = input.view(N, C)
    return own.softmax(torch.vstack([rows[: N // 2], rows[N // 2 :]])).view(input.shape)
