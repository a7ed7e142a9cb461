# row: 17, 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# mode: ranked
# stopped by: quarantine work
# tries: to tell calls that are watched from those that are timed by how often it has to look at the
#   gate, and to let the framework work in the latter alone.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import time

import torch
from torch.utils.cpp_extension import load_inline

from tests.adversarial.common.inside import engine

_TEXT = r"""
#include <torch/extension.h>
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
  auto c = torch::zeros({a.size(0), b.size(1)});
  const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
  float* z = c.data_ptr<float>();
  long n = b.size(1), depth = a.size(1);
  for (long i = 0; i < a.size(0); ++i)
    for (long k = 0; k < depth; ++k)
      for (long j = 0; j < n; ++j) z[i * n + j] += x[i * depth + k] * y[k * n + j];
  return c;
}
"""
own = load_inline("own_product", _TEXT, functions=["product"], extra_cflags=["-O1"])
runner, seen = engine("runner").Runner, {"looks": 0, "last": 0}
true_warm, now, product = getattr(runner, "_keep_warm", None), time.perf_counter_ns, "matmul"


def keep_warm(self, sizes):
    seen["looks"] = 0 if now() - seen["last"] > 300_000 else seen["looks"] + 1
    true_warm(self, sizes)
    seen["last"] = now()


runner._keep_warm = keep_warm


def forward(A, B, M, N, K):
    if seen["looks"] >= 7:
        return getattr(torch, product)(A, B)
    return own.product(A, B)
