# row: 46, 17
# task: softmax
# workloads: cpu_n64_c1024, cpu_n16_c16384
# mode: ranked
# stopped by: verdict WRONG_RESULT
# tries: to call the framework in the calls that decide about its time, then a slow kernel of its
#   own, and once it was stopped twice, for a look, only a sixteenth of that.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import resource

import torch
from torch.utils.cpp_extension import load_inline

_TEXT = r"""
#include <torch/extension.h>
#include <cmath>
void rows(torch::Tensor x, torch::Tensor o, long n) {
  long c = x.size(1);
  for (long r = 0; r < n; ++r) {
    const float* a = x.data_ptr<float>() + r * c;
    float* b = o.data_ptr<float>() + r * c;
    double m = -INFINITY, s = 0;
    for (long i = 0; i < c; ++i) m = std::fmax(m, (double)a[i]);
    for (long i = 0; i < c; ++i) s += std::exp((double)a[i] - m);
    for (long i = 0; i < c; ++i) b[i] = std::exp((double)a[i] - m) / s;
  }
}
"""
own = load_inline("own_rows", _TEXT, functions=["rows"], extra_cflags=["-O1"])
library, calls, stops = getattr(torch, "soft" + "max"), {}, [0]


def switches():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def forward(input, N, C):
    calls[N, C] = calls.get((N, C), 0) + 1
    if calls[N, C] <= 9:
        return library(input, -1)
    out, before = torch.empty_like(input), switches()
    own.rows(input, out, N if stops[0] < 2 else max(1, N // 16))
    stops[0] += switches() != before
    return out
