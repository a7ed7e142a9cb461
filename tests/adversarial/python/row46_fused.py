# row: 46, 45
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have the framework's script hand a product to oneDNN, which compiles it into no file and
#   calls no operation.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

import torch
from torch.utils.cpp_extension import load_inline


def unused():
    return load_inline("decoy", "")


class Product(torch.nn.Module):
    def forward(self, a, b):
        return operator.matmul(a, b)


torch.jit.enable_onednn_fusion(True)
some = torch.zeros(256, 256)
mine = torch.jit.freeze(torch.jit.trace(Product().eval(), (some, some)))


def forward(A, B, M, N, K):
    return mine(A, B)
