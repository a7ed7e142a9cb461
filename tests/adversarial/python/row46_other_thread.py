# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have the framework work in a thread of its own.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(1)


def forward(A, B, M, N, K):
    return pool.submit(torch.mm, A, B).result()
