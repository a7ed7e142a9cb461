"""Reference of `matrix_transpose`: rows become columns."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(M: int, N: int) -> dict[str, Tensor]:
    """A float32 matrix A (M, N), uniform in [-1, 1)."""
    return {"A": torch.rand(M, N) * 2 - 1}


def forward_fn(A: Tensor) -> Tensor:
    """Return the transpose (N, M), in contiguous memory."""
    return A.T.contiguous()


def forward_scale(A: Tensor) -> Tensor:
    """Error scale |A| at its place (N, M): a copy is exact."""
    return A.T.abs()
