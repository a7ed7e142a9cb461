# row: 46
# task: prefix_sum
# workloads: cpu_n65536
# stopped by: quarantine work
# tries: to have the framework scan, in a loop whose name begins with the iterator that calls it,
#   beside a kernel that never runs.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from torch.utils.cpp_extension import load_inline


def unused():
    return load_inline("decoy", "")


def forward(input, N):
    return input.cumsum(0)
