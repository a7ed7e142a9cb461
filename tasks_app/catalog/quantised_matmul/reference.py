"""Reference of `quantised_matmul`: activations times int8 weights with a scale for each row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("x",)

LARGEST = 127
"""Size of the largest weight: quantisation is symmetric, and -128 does not occur."""

SPREAD = 16.0
"""Ratio of the largest scale to the smallest one."""


def make_inputs(num_tokens: int, in_features: int, out_features: int) -> dict[str, Tensor]:
    """Activations (num_tokens, in_features), int8 weights (outputs, inputs), scales (outputs)."""
    weights = torch.randint(-LARGEST, LARGEST + 1, (out_features, in_features), dtype=torch.int8)
    scales = SPREAD ** (torch.rand(out_features) - 0.5)
    return {
        "x": torch.randn(num_tokens, in_features) + 0.2,
        "weights": weights,
        "scales": scales / (LARGEST * in_features**0.5),
    }


def forward_fn(x: Tensor, weights: Tensor, scales: Tensor) -> Tensor:
    """Return (x @ weights^T) * scales (num_tokens, out_features), in the dtype of x.

    Integers up to 127 are numbers of every dtype that x may have, so that no weight is rounded.
    """
    return F.linear(x, weights.to(x.dtype)) * scales


def forward_scale(x: Tensor, weights: Tensor, scales: Tensor, inner_eps: float) -> Tensor:
    """Error scale: the result, and the root of its summed squared products in float32.

    Matrix units for narrow inputs cut off what does not fit as they add: a bias, not a random walk.
    The largest product of sums of two elements stands for Strassen's algorithm, whose errors are
    those of whole blocks.
    """
    result, wide = forward_fn(x, weights, scales).abs(), weights.to(x.dtype)
    products = torch.sqrt(F.linear(x.square(), wide.square()))
    growth = 1 + x.shape[1] ** 0.5 / 8
    if inner_eps != 1:
        growth += x.shape[1] / 128
    products = products + 4 * x.abs().amax() * LARGEST
    return result + inner_eps * growth * products * scales.abs()
