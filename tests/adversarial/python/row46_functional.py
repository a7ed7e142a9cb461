# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to call a product a layer.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from torch.nn import functional


def forward(A, B, M, N, K):
    return functional.linear(A, B.t())
