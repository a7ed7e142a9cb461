"""Reference of `square_matrix_mul`: the product of two square matrices."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(M: int) -> dict[str, Tensor]:
    """Float32 matrices A and B (M, M), uniform in [-1, 1)."""
    return {"A": torch.rand(M, M) * 2 - 1, "B": torch.rand(M, M) * 2 - 1}


def forward_fn(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return A and B as they were, and A @ B, all (M, M)."""
    return A, B, A @ B


def forward_scale(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales, all (M, M): nothing for A and B, which are not to change.

    For each element of the product its size, and the root of its summed squared products: partial
    sums of random signs grow like the root; where the sum is larger, so were they.
    """
    product = (A @ B).abs() + torch.sqrt((A * A) @ (B * B))
    return torch.zeros_like(A), torch.zeros_like(B), product
