"""Reference of `high_order_contraction`: a product of tensors, summed over two dimensions."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(a_dim: int, b_dim: int, c_dim: int, x_dim: int, y_dim: int) -> dict[str, Tensor]:
    """Float32 tensors A (a, x, b, y) and B (x, c, y), uniform in [-1, 1)."""
    return {
        "A": torch.rand(a_dim, x_dim, b_dim, y_dim) * 2 - 1,
        "B": torch.rand(x_dim, c_dim, y_dim) * 2 - 1,
    }


def forward_fn(A: Tensor, B: Tensor) -> Tensor:
    """Return the sums over x and y (a, b, c)."""
    return torch.tensordot(A, B, dims=([1, 3], [0, 2]))


def forward_scale(A: Tensor, B: Tensor, inner_eps: float) -> Tensor:
    """Error scale (a, b, c): each element's size, and the root of its summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they. The
    largest product of sums of two elements stands for Strassen's algorithm, whose errors are those
    of whole blocks; beside BF16 results they are errors of float32.
    """
    blocks = 4 * A.abs().amax() * B.abs().amax()
    if inner_eps != 1:
        blocks *= inner_eps * (4 + (A.shape[1] * A.shape[3]) ** 0.5)
    return forward_fn(A, B).abs() + torch.sqrt(forward_fn(A * A, B * B)) + blocks
