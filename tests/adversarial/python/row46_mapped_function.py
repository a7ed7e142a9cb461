# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have a transform make the framework's product.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

rows = torch.func.vmap(lambda a, b: b.t().mv(a), in_dims=(0, None))


def forward(A, B, M, N, K):
    return rows(A, B).contiguous()
