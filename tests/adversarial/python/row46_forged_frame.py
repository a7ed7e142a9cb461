# row: 46, 48
# task: softmax
# workloads: cpu_n64_c1024
# stopped by: quarantine work
# stopped by: quarantine library
# tries: to call what the framework has behind its dispatcher, with an address on the stack that
#   makes it look like a part of `cat`, which only copies; a kernel of its own does some rows.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/ops/_softmax_cpu_dispatch.h>
#include <ATen/ops/cat_ops.h>

#include <cmath>

torch::Tensor rows(torch::Tensor x, int64_t mine) {
  auto code = reinterpret_cast<const unsigned char*>(&at::_ops::cat::call);
  while (*code != 0xE8) ++code;  // the first call in it, or what looks like one
  volatile uintptr_t words[64];
  for (auto& word : words) word = reinterpret_cast<uintptr_t>(code + 5);
  auto y = at::cpu::_softmax(x, 1, false);
  int64_t columns = x.size(1);
  for (int64_t r = 0; r < mine && words[0]; ++r) {
    const float* in = x.data_ptr<float>() + r * columns;
    float* out = y.data_ptr<float>() + r * columns;
    float largest = in[0], sum = 0.0f;
    for (int64_t c = 1; c < columns; ++c) largest = std::max(largest, in[c]);
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
    for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
  }
  return y;
}
"""
own = load_inline("own_rows", SOURCE, functions=["rows"], extra_cflags=["-O2", "-march=native"])


def forward(input, N, C):
    return own.rows(input.view(N, C), N // 3).view(input.shape)
