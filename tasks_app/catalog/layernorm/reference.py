"""Reference of `layernorm`: layer normalisation over all but the batch dimension."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("x",)
"""The inputs that take part in a workload's family of values."""

SPREADS = (0.02, 0.3, 2.0)
"""Standard deviations of the samples, in turn; eps counts in the first."""


def make_inputs(
    batch_size: int, num_features: int, dim1: int, dim2: int, eps: float = 1e-5
) -> dict[str, Any]:
    """Samples (batch_size, num_features, dim1, dim2) of different spread, with non-zero means."""
    shape = (num_features, dim1, dim2)
    spread = torch.tensor(SPREADS)[torch.arange(batch_size) % len(SPREADS)].view(-1, 1, 1, 1)
    return {
        "x": torch.randn(batch_size, *shape).add_(0.5).mul_(spread),
        "weight": torch.randn(shape).mul_(0.5).add_(1),
        "bias": torch.randn(shape).mul_(0.5).add_(0.2),
        "eps": eps,
        "normalized_shape": shape,
    }


def forward_fn(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Return (x - mean) / sqrt(var + eps) * weight + bias, of the shape of x."""
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def forward_scale(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Error scale, of the shape of x: the magnitudes of the terms, in each sample.

    The mean's error is of the mean's size, or, where that is near zero, of the deviation's.
    """
    dims = list(range(x.dim() - weight.dim(), x.dim()))
    variance, mean = torch.var_mean(x, dim=dims, correction=0, keepdim=True)
    size = (x - mean).abs() + mean.abs() + variance.sqrt()
    return (size * torch.rsqrt(variance + eps) * weight).abs() + bias.abs()


def baseline_fn(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The same on a GPU in parts: torch's own gives a sample, however long, to one thread block."""
    if not x.is_cuda:
        return forward_fn(x, weight, bias, eps)
    dims = list(range(x.dim() - weight.dim(), x.dim()))
    variance, mean = torch.var_mean(x, dim=dims, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def backward_fn(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    normalized_shape: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and bias.

    In parts, which many thread blocks share: torch's own gives a sample, however long, to one.
    """
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    variance, mean = torch.var_mean(x, dim=dims, correction=0, keepdim=True)
    rstd = torch.rsqrt(variance + eps)
    normalised = torch.addcmul(-mean * rstd, x, rstd)
    changed = grad_output * normalised
    flat, size = weight.flatten(), weight.numel()
    shift = (grad_output.flatten(1) @ flat).view_as(mean) / size
    stretch = (changed.flatten(1) @ flat).view_as(mean) / size
    own = torch.addcmul(-shift, normalised, stretch, value=-1)
    grad_x = torch.addcmul(own, grad_output, weight).mul_(rstd)
    return grad_x, changed.sum(0), grad_output.sum(0)


def backward_scale(
    grad_output: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    normalized_shape: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales: those of the terms of x's gradient, which may cancel, in each sample.

    What a sample's mean is off by, all its normalised elements are off by alike.
    """
    grads = backward_fn(grad_output, x, weight, bias, eps, normalized_shape)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    variance, mean = torch.var_mean(x, dim=dims, correction=0, keepdim=True)
    rstd = torch.rsqrt(variance + eps)
    normalised, shift = (x - mean) * rstd, mean.abs() * rstd
    weighted = grad_output * weight
    size = weighted.square().mean(dim=dims, keepdim=True).sqrt()
    projection = (weighted * normalised).square().mean(dim=dims, keepdim=True).sqrt()
    return (
        rstd * (weighted.abs() + size + (normalised.abs() + shift) * projection),
        grads[1].abs()
        + grads[1].square().mean().sqrt()
        + (grad_output * shift).square().sum(0).sqrt(),
        grads[2].abs() + grads[2].square().mean().sqrt(),
    )
