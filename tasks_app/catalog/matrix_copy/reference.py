"""Reference of `matrix_copy`: a matrix twice."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(M: int, N: int) -> dict[str, Tensor]:
    """A float32 matrix A (M, N), uniform in [-1, 1)."""
    return {"A": torch.rand(M, N) * 2 - 1}


def forward_fn(A: Tensor) -> tuple[Tensor, Tensor]:
    """Return A as it was, and its copy B, both (M, N)."""
    return A, A.clone()


def forward_scale(A: Tensor) -> tuple[Tensor, Tensor]:
    """Error scales |A|, both (M, N): a copy is exact."""
    return A.abs(), A.abs()
