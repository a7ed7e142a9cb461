# task: softmax
# workloads: cpu_n16_c256
# mode: ranked
# libraries: allowed
# does: to choose the folder in which the framework's compiler keeps what it makes.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import os
from pathlib import Path

import torch

os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "mine")


@torch.compile(dynamic=False)
def whole(x):
    return torch.softmax(x, 1)


def forward(input, N, C):
    return whole(input.view(N, C)).view(input.shape)
