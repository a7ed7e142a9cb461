# row: 46
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to call a product a look-up in a table of embeddings, which another library compiles.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

look_up = getattr(torch.nn.functional, "embedding" + "_bag")


def unused():
    return load_inline("decoy", "")


def forward(A, B, M, N, K):
    rows = torch.arange(K).expand(M, K).contiguous()
    return look_up(rows, B, mode="sum", per_sample_weights=A)
