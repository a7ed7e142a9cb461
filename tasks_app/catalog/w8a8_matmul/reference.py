"""Reference of `w8a8_matmul`: int8 activations times int8 weights, each with its scales."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("x_scales", "weight_scales")

LARGEST = 127
"""Size of the largest number: quantisation is symmetric, and -128 does not occur."""

SPREAD = 16.0
"""Ratio of the largest scale to the smallest one."""


def make_inputs(
    num_tokens: int, in_features: int, out_features: int, peak: float = 0.3
) -> dict[str, Tensor]:
    """Quantised activations and weights, and a positive scale for each row of either.

    peak: standard deviation of the activations, as a part of the largest number.
    """
    activations = torch.randn(num_tokens, in_features) * (peak * LARGEST)
    weights = torch.randint(-LARGEST, LARGEST + 1, (out_features, in_features), dtype=torch.int8)
    unit = 1 / (LARGEST * in_features**0.25)
    return {
        "x": activations.round().clamp(-LARGEST, LARGEST).to(torch.int8),
        "x_scales": SPREAD ** (torch.rand(num_tokens) - 0.5) * unit,
        "weights": weights,
        "weight_scales": SPREAD ** (torch.rand(out_features) - 0.5) * unit,
    }


def forward_fn(x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor) -> Tensor:
    """Return (x @ weights^T) * x_scales * weight_scales (num_tokens, out_features)."""
    wide = x_scales.dtype
    return (x.to(wide) @ weights.to(wide).mT) * x_scales[:, None] * weight_scales


def baseline_fn(x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor) -> Tensor:
    """The product by tensor cores for int8, where these take the shape, and by those for BF16."""
    aligned = x.shape[0] > 16 and x.shape[1] % 8 == 0 and weights.shape[0] % 8 == 0
    if x.is_cuda and aligned:
        sums = torch._int_mm(x, weights.mT).to(torch.float32)
    elif x.is_cuda:
        sums = (x.to(torch.bfloat16) @ weights.to(torch.bfloat16).mT).to(torch.float32)
    else:
        sums = x.to(torch.float32) @ weights.to(torch.float32).mT
    return (sums * x_scales[:, None] * weight_scales).to(torch.bfloat16)


def forward_scale(
    x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor, inner_eps: float
) -> Tensor:
    """Error scale: the result, and the root of its summed squared products in float32.

    Sums of integers are exact; those in float32, of more than 2^24, are not.
    """
    wide = x_scales.dtype
    result = forward_fn(x, x_scales, weights, weight_scales).abs()
    products = torch.sqrt(x.to(wide).square() @ weights.to(wide).square().mT)
    growth = 1 + x.shape[1] ** 0.5 / 8
    scales = x_scales[:, None].abs() * weight_scales.abs()
    return result + inner_eps * growth * (products + 4 * LARGEST**2) * scales
