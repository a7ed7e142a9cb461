# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to multiply by the special method of a tensor.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from torch.utils.cpp_extension import load_inline


def unused():
    return load_inline("decoy", "")


def forward(A, B, M, N, K):
    return A.__matmul__(B)
