# task: softmax
# workloads: cpu_n16_c256
# mode: test
# does: to compile C++ by load_inline in its first call, under a name that is drawn at random.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import functools
import uuid

from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor rows(torch::Tensor x) {
  auto out = torch::empty_like(x);
  for (int64_t r = 0; r < x.size(0); ++r) {
    const float* in = x.data_ptr<float>() + r * x.size(1);
    float* to = out.data_ptr<float>() + r * x.size(1);
    float largest = in[0], sum = 0.0f;
    for (int64_t c = 1; c < x.size(1); ++c) largest = in[c] > largest ? in[c] : largest;
    for (int64_t c = 0; c < x.size(1); ++c) sum += to[c] = std::exp(in[c] - largest);
    for (int64_t c = 0; c < x.size(1); ++c) to[c] /= sum;
  }
  return out;
}
"""


@functools.cache
def own():
    name = f"softmax_{uuid.uuid4().hex[:8]}"
    return load_inline(name, SOURCE, functions=["rows"], extra_cflags=["-O2"])


def forward(input, N, C):
    return own().rows(input)
