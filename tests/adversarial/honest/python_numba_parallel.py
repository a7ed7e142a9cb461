# needs: numba
# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# does: to share its rows among numba's threads, with a helper that is inlined.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import math

import numpy as np
import torch
from numba import njit, prange


@njit(inline="always")
def top_of(row):
    top = row[0]
    for j in range(1, row.size):
        top = max(top, row[j])
    return top


@njit(parallel=True, fastmath={"contract", "reassoc"}, cache=True, nogil=True)
def rows(x, out):
    for i in prange(x.shape[0]):
        top = top_of(x[i])
        total = 0.0
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] = out[i, j] / total


def forward(input, N, C):
    out = np.empty((N, C), np.float32)
    rows(input.numpy(), out)
    return torch.from_numpy(out)
