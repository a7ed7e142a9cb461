# row: 48, 59
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: quarantine loaded
# tries: to load a library that no compiler of the builder's made, from a file of its own.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch

maps = Path("/proc/self/maps").read_text().split()
original = next(word for word in maps if os.path.basename(word).startswith("libm.so"))
own = Path.home() / "own.so"
own.write_bytes(Path(original).read_bytes())
library = ctypes.CDLL(str(own))


def forward(x, weights, biases):
    return torch.relu(torch.addmm(biases, x, weights.t()))
