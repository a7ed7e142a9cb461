# needs: numba
# task: softmax
# workloads: cpu_n16_c256
# mode: test
# does: to compute with numba, whose cache is carried from process to process.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit


@njit(cache=True, fastmath=True)
def rows(out, x):
    for r in range(x.shape[0]):
        out[r] = np.exp(x[r] - x[r].max())
        out[r] /= out[r].sum()


def forward(input, N, C):
    out = torch.empty_like(input)
    rows(out.numpy().reshape(N, C), input.numpy().reshape(N, C))
    return out
