"""Reference of `dot_product`: the inner product of two vectors."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """Two float32 vectors (N), uniform in [-1, 1).

    The products have mean zero: with any other mean their sum would average the rounding of
    low-precision inputs away, and a low-precision kernel would pass.
    """
    return {"X": torch.rand(N) * 2 - 1, "Y": torch.rand(N) * 2 - 1}


def forward_fn(X: Tensor, Y: Tensor) -> Tensor:
    """Return sum(X * Y), shape (1), in float32 at least: the result is not as narrow as BF16."""
    wide = torch.promote_types(X.dtype, torch.float32)
    return torch.dot(X.to(wide), Y.to(wide)).reshape(1)


def forward_scale(X: Tensor, Y: Tensor) -> Tensor:
    """Error scale, shape (1): the sum's size, and the root of the summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    return (torch.dot(X, Y).abs() + torch.linalg.vector_norm(X * Y)).reshape(1)
