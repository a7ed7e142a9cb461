"""Reference of `cross_entropy_loss`: the cross-entropy of two distributions."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("Y",)
"""X stays a distribution: logarithms of numbers beyond 1 would change the sign of the terms."""

ZEROS = 1 / 8
"""Share of the classes that have no probability, of either distribution."""

LEAST = 1e-8
"""Smallest probability whose logarithm is taken."""

SPREAD = 1.5
"""Standard deviation of the logarithms of the probabilities.

Nearly equal ones would average the errors of low precision out; with very unequal ones, a serial
sum would lose the small terms.
"""


def make_inputs(C: int) -> dict[str, Tensor]:
    """Two distributions (C), each with a zero in eight classes, drawn by chance.

    A class without a predicted probability costs log(LEAST); one without a target costs nothing.
    """
    predicted, target = (torch.softmax(torch.randn(C) * SPREAD, dim=0) for _ in range(2))
    return {
        "X": predicted.masked_fill(torch.rand(C) < ZEROS, 0.0),
        "Y": target.masked_fill(torch.rand(C) < ZEROS, 0.0),
    }


def forward_fn(X: Tensor, Y: Tensor) -> Tensor:
    """Return -sum(Y * log(max(X, LEAST))), shape (1)."""
    wide = torch.promote_types(X.dtype, torch.float32)
    return -torch.dot(Y.to(wide), X.to(wide).clamp(min=LEAST).log()).reshape(1)


def forward_scale(X: Tensor, Y: Tensor) -> Tensor:
    """Error scale, shape (1): the sum of the terms' magnitudes.

    One is added to each logarithm, as near a probability of 1 a fast one has an absolute error.
    """
    return torch.dot(Y.abs(), X.clamp(min=LEAST).log().abs() + 1).reshape(1)
