"""Reference of `fp4_weight_matmul`: BF16 activations times packed FP4 weights with FP8 scales."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("x",)

BLOCK = 16
"""Weights of a row that share a scale."""

NUMBERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
"""What the sixteen codes of e2m1 stand for."""


def make_inputs(
    num_tokens: int, in_features: int, out_features: int, least: float = 100.0
) -> dict[str, Tensor]:
    """Activations, two weights a byte, their scales (outputs, blocks), and one scale for all.

    least: of the scales of blocks, of which the largest is four times that. Below 2^-6 they are
    subnormal numbers of e4m3.
    """
    scales = (torch.rand(out_features, in_features // BLOCK) * 3 + 1) * least
    return {
        "x": torch.randn(num_tokens, in_features) + 0.2,
        "weights": torch.randint(0, 256, (out_features, in_features // 2), dtype=torch.uint8),
        "scales": scales.to(torch.float8_e4m3fn),
        "scale": (torch.rand(1) + 0.5) / (800 * in_features**0.5),
    }


def _unpacked(weights: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights times their scales (outputs, inputs): six bits at most, exact in BF16.

    The lower four bits of a byte are the earlier weight.
    """
    numbers = torch.tensor(NUMBERS, dtype=dtype, device=weights.device)
    codes = torch.stack((weights & 15, weights >> 4), -1).flatten(-2).to(torch.int64)
    return numbers[codes] * scales.to(dtype).repeat_interleave(BLOCK, 1)


def forward_fn(x: Tensor, weights: Tensor, scales: Tensor, scale: Tensor) -> Tensor:
    """Return (x @ weights^T) * scale (num_tokens, out_features)."""
    return (x @ _unpacked(weights, scales, x.dtype).mT) * scale


def forward_scale(
    x: Tensor, weights: Tensor, scales: Tensor, scale: Tensor, inner_eps: float
) -> Tensor:
    """Error scale: the result, and the root of its summed squared products in float32.

    Matrix units cut off what does not fit as they add: a bias, not a random walk. The largest
    product of sums of two elements stands for Strassen's algorithm, whose errors are those of
    whole blocks.
    """
    wide = _unpacked(weights, scales, x.dtype)
    products = torch.sqrt(x.square() @ wide.square().mT)
    products = products + 4 * x.abs().amax() * wide.abs().amax()
    growth = 1 + x.shape[1] ** 0.5 / 8 + x.shape[1] / 128
    return ((x @ wide.mT).abs() + inner_eps * growth * products) * scale.abs()
