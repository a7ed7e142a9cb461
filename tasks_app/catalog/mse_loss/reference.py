"""Reference of `mse_loss`: the mean of the squared differences of two vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

NOISE = 0.01
"""Standard deviation of X - Y.

Independent vectors would let low precision pass, as a sum over many elements averages its errors
away. Errors of rounding that are not small beside the differences add up in their squares.
"""


def make_inputs(N: int) -> dict[str, Tensor]:
    """Two vectors (N): one uniform in [-1, 1), and the same with noise."""
    target = torch.rand(N) * 2 - 1
    return {"X": target + torch.randn(N) * NOISE, "Y": target}


def forward_fn(X: Tensor, Y: Tensor) -> Tensor:
    """Return mean((X - Y)^2), shape (1)."""
    wide = torch.promote_types(X.dtype, torch.float32)
    return F.mse_loss(X.to(wide), Y.to(wide)).reshape(1)


def baseline_fn(X: Tensor, Y: Tensor) -> Tensor:
    """The same, shape (1): on a GPU, beside a wide vector the other is widened as it is read."""
    if not X.is_cuda:
        return forward_fn(X, Y)
    return F.mse_loss(X.to(torch.promote_types(X.dtype, torch.float32)), Y).reshape(1)


def forward_scale(X: Tensor, Y: Tensor) -> Tensor:
    """Error scale, shape (1): the loss itself, as all its terms have one sign."""
    return forward_fn(X, Y)
