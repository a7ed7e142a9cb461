"""Reference of `matrix_mul`: the product of two dense matrices."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(M: int, N: int, K: int) -> dict[str, Tensor]:
    """Float32 matrices A (M, K) and B (K, N), uniform in [-1, 1)."""
    return {"A": torch.rand(M, K) * 2 - 1, "B": torch.rand(K, N) * 2 - 1}


def forward_fn(A: Tensor, B: Tensor) -> Tensor:
    """Return A @ B (M, N)."""
    return A @ B


def forward_scale(A: Tensor, B: Tensor, inner_eps: float) -> Tensor:
    """Error scale (M, N): for each element its size, and the root of its summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they. The
    largest product of sums of two elements stands for Strassen's algorithm, whose errors are those
    of whole blocks; beside BF16 results they are errors of float32.
    """
    blocks = 4 * A.abs().amax() * B.abs().amax()
    if inner_eps != 1:
        blocks *= inner_eps * (4 + A.shape[1] ** 0.5)
    return (A @ B).abs() + torch.sqrt((A * A) @ (B * B)) + blocks
