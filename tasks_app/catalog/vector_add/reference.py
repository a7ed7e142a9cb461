"""Reference of `vector_add`: the sum of two vectors."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """Two float32 vectors (N), uniform in [-1, 1)."""
    return {"A": torch.rand(N) * 2 - 1, "B": torch.rand(N) * 2 - 1}


def forward_fn(A: Tensor, B: Tensor) -> Tensor:
    """Return A + B (N)."""
    return A + B


def forward_scale(A: Tensor, B: Tensor) -> Tensor:
    """Error scale |A| + |B| (N): a sum near zero may carry the rounding of its terms."""
    return A.abs() + B.abs()
