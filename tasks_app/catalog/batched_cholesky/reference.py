"""Reference of `batched_cholesky`: lower triangular factors of positive definite matrices."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("matrices",)


def make_inputs(batch: int, n: int, condition: float) -> dict[str, Tensor]:
    """Symmetric positive definite matrices (batch, n, n), of some four times that condition number.

    Covariances of n samples of n independent numbers, and `1 / condition` on the diagonal.
    """
    samples = torch.randn(batch, n, n, dtype=torch.float64)
    unit = torch.eye(n, dtype=torch.float64)
    return {"matrices": samples @ samples.mT / n + unit / condition}


def forward_fn(matrices: Tensor) -> Tensor:
    """Return the factors L (batch, n, n) with L @ L^T = matrices, and zeros above the diagonal."""
    return torch.linalg.cholesky(matrices)


def verify_fn(
    inputs: dict[str, Tensor], outputs: dict[str, Tensor], eps: float
) -> dict[str, Tensor]:
    """How far L @ L^T is from the matrices, and whether L is such a factor at all.

    An element of L @ L^T may be off by what n + 1 rounded operations give in any order, with the
    root of the product of both diagonal elements as the size of each term (Higham, Accuracy and
    Stability of Numerical Algorithms, theorem 10.3): half of that grows like a random walk.
    """
    matrices, factors = inputs["matrices"], outputs["factors"]
    roots = matrices.diagonal(dim1=-2, dim2=-1).sqrt()
    allowed = eps * (4 + matrices.shape[-1] ** 0.5) * roots[:, :, None] * roots[:, None, :]
    diagonal = factors.diagonal(dim1=-2, dim2=-1)
    return {
        "L L^T - A": (factors @ factors.mT - matrices).abs() / allowed,
        "elements above the diagonal": torch.where(factors.triu(1) != 0, torch.inf, 0.0),
        "diagonal that is not positive": torch.where(diagonal > 0, 0.0, torch.inf),
    }
