"""Reference of `layer_norm`: layer normalisation of one vector."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TAIL = 3
"""Number of elements at the end that are larger than the rest."""


def make_inputs(N: int, epsilon: float = 1e-5) -> dict[str, Tensor | float]:
    """Vectors (N); the input's variance is near epsilon, and its mean is not zero.

    Uniform numbers in [-1, 1) would hide both a missing epsilon and a missing mean.
    """
    vector = torch.randn(N) * 0.01 + 0.005
    vector[-TAIL:] *= 8
    return {
        "input": vector,
        "weight": torch.randn(N) * 0.3 + 1,
        "bias": torch.randn(N) * 0.5 + 0.2,
        "epsilon": epsilon,
    }


def forward_fn(input: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Return (input - mean) / sqrt(variance + epsilon) * weight + bias (N)."""
    return F.layer_norm(input, input.shape, weight, bias, epsilon)


def forward_scale(input: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Error scale (N): the magnitudes of the terms.

    The mean's error is of the mean's size, or, where that is near zero, of the deviation's; so is
    the error of a kernel that takes the mean and the bias together.
    """
    variance, mean = torch.var_mean(input, correction=0)
    size = (input - mean).abs() + mean.abs() + variance.sqrt()
    return (size * torch.rsqrt(variance + epsilon) * weight).abs() + bias.abs()
