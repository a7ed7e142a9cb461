"""Reference of `matrix_vector_mul`: a dense matrix times a vector."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(M: int, N: int) -> dict[str, Tensor]:
    """A float32 matrix A (M, N) and a vector x (N), uniform in [-1, 1)."""
    return {"A": torch.rand(M, N) * 2 - 1, "x": torch.rand(N) * 2 - 1}


def forward_fn(A: Tensor, x: Tensor) -> Tensor:
    """Return A @ x (M)."""
    return A @ x


def forward_scale(A: Tensor, x: Tensor) -> Tensor:
    """Error scale (M): for each element its size, and the root of its summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    return (A @ x).abs() + torch.sqrt((A * A) @ (x * x))
