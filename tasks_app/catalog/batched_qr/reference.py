"""Reference of `batched_qr`: orthonormal columns and upper triangular factors of tall matrices."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("matrices",)

LEAST = 2.0**-100
"""Stands in the place of the length of a column of zeros."""


def make_inputs(batch: int, m: int, n: int, condition: float) -> dict[str, Tensor]:
    """Matrices (batch, m, n) with m >= n, whose columns are nearly dependent.

    condition: ratio of the largest to the smallest of the lengths that random directions have,
    before they are mixed. It is about the matrices' condition number.
    """
    if m < n:
        raise ValueError(f"matrices of {m} rows cannot have {n} independent columns")
    lengths = condition ** -torch.linspace(0, 1, n)
    samples = torch.randn(batch, m, n) * lengths
    mixed = torch.randn(batch, n, n) / n**0.5
    return {"matrices": samples @ mixed}


def forward_fn(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Return Q (batch, m, n) and R (batch, n, n), whose diagonal is not negative."""
    q, r = torch.linalg.qr(matrices)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(matrices.dtype)
    return q * signs[:, None, :], r * signs[:, :, None]


def verify_fn(
    inputs: dict[str, Tensor], outputs: dict[str, Tensor], eps: float
) -> dict[str, Tensor]:
    """How far Q R is from the matrices, and whether Q and R are such factors at all.

    Householder's reflections keep the error of a column below a small multiple of its length, and
    that of Q^T Q as small (Higham, Accuracy and Stability of Numerical Algorithms, theorem 19.4).
    The multiple grows like a random walk over the n reflections and the m elements of each, which
    are squared and added up one by one: a reflection is off by twice the error of that sum.
    """
    matrices, q, r = inputs["matrices"], outputs["q"], outputs["r"]
    m, n = matrices.shape[-2:]
    allowed = eps * (8 + 2 * n**0.5 + 2 * m**0.5)
    lengths = matrices.norm(dim=-2, keepdim=True).clamp(min=LEAST)
    diagonal = r.diagonal(dim1=-2, dim2=-1)
    return {
        "Q R - A": (q @ r - matrices).abs() / (allowed * lengths),
        "Q^T Q - I": (q.mT @ q - torch.eye(n)).abs() / allowed,
        "elements of R below the diagonal": torch.where(r.tril(-1) != 0, torch.inf, 0.0),
        "negative diagonal of R": torch.where(diagonal >= 0, 0.0, torch.inf),
    }
