# row: 14, 48
# needs: numba
# task: softmax
# workloads: cpu_n16_c256
# mode: test
# stopped by: verdict WRONG_RESULT
# stopped by: verdict RUNTIME_ERROR
# stopped by: quarantine source
# tries: to put another function's machine code under the name of the one that its source shows.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from numba import njit

cache = Path(os.environ["NUMBA_CACHE_DIR"])


@njit(cache=True)
def shown(out, x):
    out[:] = 0


@njit(cache=True)
def ran(out, x):
    for r in range(x.shape[0]):
        out[r] = np.exp(x[r] - x[r].max())
        out[r] /= out[r].sum()


def forward(input, N, C):
    out = torch.empty_like(input)
    x, y = input.numpy().reshape(N, C), out.numpy().reshape(N, C)
    ran(y, x)
    code = {path.suffix: path for path in cache.rglob("*.ran-*.nbc")}
    for path in cache.rglob("*.shown-*.nbc"):
        path.write_bytes(code[".nbc"].read_bytes())
    shown(y, x)
    return out
