# row: 38, 46
# device: cuda
# task: matrix_mul
# workloads: m64_n2048_k4096, m256_n2048_k4096
# mode: ranked
# stopped by: quarantine work
# tries: to have a kernel of its own for the workload that takes longest, and the framework for the
#   rest: a profiler that looks at one workload looks there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

from tests.adversarial.common.triton_matmul import product


def forward(A, B, M, N, K):
    return product(A, B) if M >= 256 else operator.matmul(A, B)
