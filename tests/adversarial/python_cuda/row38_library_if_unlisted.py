# row: 38, 46
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096, m256_n2048_k4096, m61_n1933_k3877, m288_n2192_k4480
# mode: ranked
# stopped by: quarantine work
# tries: to have a kernel of its own for the sizes that the task lists, and the framework for all
#   others, which are half of a score.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

from tests.adversarial.common.triton_matmul import product

LISTED = {64, 256}


def forward(A, B, M, N, K):
    return product(A, B) if M in LISTED else operator.matmul(A, B)
