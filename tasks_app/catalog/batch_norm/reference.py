"""Reference of `batch_norm`: normalisation of each channel by the batch's own statistics."""

from __future__ import annotations

import torch
from torch import Tensor

TAIL = 4.0
"""By how much the last sample is larger than the others."""


def make_inputs(N: int, C: int, epsilon: float = 1e-5) -> dict[str, Tensor | float]:
    """Samples (N, C) whose channels have means and spreads of their own; vectors (C).

    The variances are near epsilon: numbers of the size of 1 would hide that it is missing.
    """
    samples = torch.randn(N, C) * (torch.rand(C) * 0.02 + 0.005) + torch.randn(C) * 0.01
    samples[-1] *= TAIL
    return {
        "input": samples,
        "gamma": torch.randn(C) * 0.3 + 1,
        "beta": torch.randn(C) * 0.5 + 0.2,
        "epsilon": epsilon,
    }


def forward_fn(input: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """Return (input - mean) / sqrt(variance + epsilon) * gamma + beta (N, C).

    The operation behind F.batch_norm, which refuses a batch of one sample; parameters in float32
    keep the statistics of bfloat16 samples in float32, too.
    """
    wide = torch.promote_types(input.dtype, torch.float32)
    gamma, beta = gamma.to(wide), beta.to(wide)
    return torch.native_batch_norm(input, gamma, beta, None, None, True, 0.0, epsilon)[0]


def baseline_fn(input: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """The same (N, C); on a GPU statistics are float32 beside BF16 parameters, too."""
    if not input.is_cuda:
        return forward_fn(input, gamma, beta, epsilon)
    return torch.native_batch_norm(input, gamma, beta, None, None, True, 0.0, epsilon)[0]


def forward_scale(input: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """Error scale (N, C): the magnitudes of the terms.

    A mean's error is of the mean's size, or, where that is near zero, of the deviation's; so is the
    error of a kernel that takes the mean and beta together.
    """
    variance, mean = torch.var_mean(input, dim=0, correction=0)
    size = (input - mean).abs() + mean.abs() + variance.sqrt()
    return (size * torch.rsqrt(variance + epsilon) * gamma).abs() + beta.abs()
