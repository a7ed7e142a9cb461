# row: 45
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have another package multiply, which brings a BLAS.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import numpy
import torch


def forward(A, B, M, N, K):
    return torch.from_numpy(numpy.dot(A.numpy(), B.numpy()))
