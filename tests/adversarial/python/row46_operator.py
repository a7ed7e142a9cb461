# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to multiply by an operator that no rule names, beside a kernel that never runs.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

from torch.utils.cpp_extension import load_inline


def unused():
    return load_inline("decoy", "")


def forward(A, B, M, N, K):
    return operator.matmul(A, B)
