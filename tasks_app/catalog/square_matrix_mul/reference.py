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


def forward_scale(A: Tensor, B: Tensor, inner_eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales, all (M, M): nothing for A and B, which are not to change.

    For each element of the product its size, and the root of its summed squared products: partial
    sums of random signs grow like the root; where the sum is larger, so were they. The largest
    product of sums of two elements stands for Strassen's algorithm, whose errors are those of whole
    blocks; beside BF16 results they are errors of float32.
    """
    blocks = 4 * A.abs().amax() * B.abs().amax()
    if inner_eps != 1:
        blocks *= inner_eps * (4 + A.shape[1] ** 0.5)
    product = (A @ B).abs() + torch.sqrt((A * A) @ (B * B)) + blocks
    return torch.zeros_like(A), torch.zeros_like(B), product
