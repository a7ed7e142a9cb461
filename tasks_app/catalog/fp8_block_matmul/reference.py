"""Reference of `fp8_block_matmul`: e4m3 activations and weights with scales for blocks of 128."""

from __future__ import annotations

import math

import torch
from torch import Tensor

VARIED = ("x", "weights")

BLOCK = 128
"""Inputs that share a scale of an activation, and rows and columns that share one of a weight."""

LARGEST = 448.0
"""The largest number of e4m3."""

SPREAD = 5
"""Powers of two that a scale may be, side by side."""


def make_inputs(
    num_tokens: int, in_features: int, out_features: int, peak: float = 0.3
) -> dict[str, Tensor]:
    """Numbers in e4m3, and scales: (tokens, blocks), and (blocks of rows, blocks).

    peak: standard deviation of the numbers, as a part of the largest one.
    """
    blocks, rows = -(-in_features // BLOCK), -(-out_features // BLOCK)
    return {
        "x": _quantised(torch.randn(num_tokens, in_features) * (peak * LARGEST)),
        "x_scales": _scales(in_features, num_tokens, blocks),
        "weights": _quantised(torch.randn(out_features, in_features) * (peak * LARGEST)),
        "weight_scales": _scales(in_features, rows, blocks),
    }


def _scales(in_features: int, *shape: int) -> Tensor:
    """Powers of two, such that results are near one."""
    middle = round(-math.log2(LARGEST / 4 * in_features**0.25))
    return 2.0 ** (torch.randint(0, SPREAD, shape) + middle - SPREAD // 2)


def _quantised(values: Tensor) -> Tensor:
    return values.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


def forward_fn(x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor) -> Tensor:
    """Return the product of activations and weights, each times its scale, (tokens, outputs)."""
    activations, wide_weights = _scaled(x, x_scales, weights, weight_scales)
    return activations @ wide_weights.mT


def _scaled(
    x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor
) -> tuple[Tensor, Tensor]:
    """Activations and weights in the scales' dtype, each times its scale."""
    wide, size = x_scales.dtype, x.shape[1]
    by_row = weight_scales.repeat_interleave(BLOCK, 0)[: weights.shape[0]]
    return (
        x.to(wide) * x_scales.repeat_interleave(BLOCK, 1)[:, :size],
        weights.to(wide) * by_row.repeat_interleave(BLOCK, 1)[:, :size],
    )


def baseline_fn(x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor) -> Tensor:
    """On a GPU the product of BF16, which holds numbers of e4m3 times powers of two exactly."""
    activations, wide_weights = _scaled(x, x_scales, weights, weight_scales)
    if not x.is_cuda:
        return (activations @ wide_weights.mT).to(torch.bfloat16)
    return activations.to(torch.bfloat16) @ wide_weights.to(torch.bfloat16).mT


def forward_scale(
    x: Tensor, x_scales: Tensor, weights: Tensor, weight_scales: Tensor, inner_eps: float
) -> Tensor:
    """Error scale: the result, and the root of its summed squared products.

    Tensor cores for eight bits keep some 13 bits behind the largest product of the 32 that they add
    at a time, cut off what is below, and hand the sum of a block to float32. So errors are a small
    part of a product of typical size for each such step, and a bias. The largest product of sums of
    two elements stands for Strassen's algorithm, whose errors are those of whole blocks.
    """
    activations, wide_weights = _scaled(x, x_scales, weights, weight_scales)
    products = torch.sqrt(activations.square() @ wide_weights.square().mT)
    largest = 4 * activations.abs().amax() * wide_weights.abs().amax()
    growth = 1 + x.shape[1] ** 0.5 / 8 + x.shape[1] / 128
    result = (activations @ wide_weights.mT).abs()
    return result + inner_eps * growth * (products + largest) + products / 256
