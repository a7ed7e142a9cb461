# row: 14, 48
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to have measured processes import modules of inductor's cache that it has rewritten.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os
from pathlib import Path

import torch

cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])


@torch.compile(dynamic=False)
def whole(x, weights, biases):
    return torch.relu(torch.addmm(biases, x, weights.t()))


def forward(x, weights, biases):
    found = whole(x, weights, biases)
    for path in cache.rglob("*.py"):
        if "GOT" not in path.read_text():
            path.write_text("print('GOT imported', flush=True)\n" + path.read_text())
    return found
