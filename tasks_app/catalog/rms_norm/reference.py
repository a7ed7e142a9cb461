"""Reference of `rms_norm`: root-mean-square normalisation of one vector."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TAIL = 3
"""Number of elements at the end that are larger than the rest."""


def make_inputs(N: int, epsilon: float = 1e-5) -> dict[str, Tensor | float]:
    """Float32 vectors (N) whose mean square is near epsilon; a heavy tail; weight and bias."""
    vector = torch.randn(N) * 0.01 + 0.003
    vector[-TAIL:] *= 8
    return {
        "input": vector,
        "weight": torch.randn(N) * 0.3 + 1,
        "bias": torch.randn(N) * 0.5 + 0.2,
        "epsilon": epsilon,
    }


def forward_fn(input: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Return input / sqrt(mean(input^2) + epsilon) * weight + bias (N)."""
    wide = input.to(torch.promote_types(input.dtype, torch.float32))
    return wide * torch.rsqrt(wide.square().mean() + epsilon) * weight + bias


def baseline_fn(input: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """The same (N) by torch's own normalisation, which has float32 inside."""
    return F.rms_norm(input, input.shape, weight, epsilon) + bias


def forward_scale(input: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Error scale (N): the magnitudes of the two terms."""
    normalised = input * torch.rsqrt(input.square().mean() + epsilon)
    return (normalised * weight).abs() + bias.abs()
