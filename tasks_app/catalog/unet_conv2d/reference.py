"""Reference of `unet_conv2d`: a two-dimensional convolution with a bias."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def make_inputs(  # noqa: PLR0913, PLR0917 - a convolution has these extents
    batch_size: int,
    in_channels: int,
    out_channels: int,
    height: int,
    width: int,
    kernel_size: int,
    stride: int,
    padding: int,
) -> dict[str, Tensor | int]:
    """A feature map (batch_size, in_channels, height, width), weights, and biases that count."""
    fan_in = in_channels * kernel_size**2
    return {
        "x": torch.randn(batch_size, in_channels, height, width) + 0.2,
        "weights": torch.randn(out_channels, in_channels, kernel_size, kernel_size) / fan_in**0.5,
        "biases": torch.randn(out_channels) * 0.5 + 0.2,
        "stride": stride,
        "padding": padding,
    }


def forward_fn(x: Tensor, weights: Tensor, biases: Tensor, stride: int, padding: int) -> Tensor:
    """Return the convolution (batch_size, out_channels, height', width')."""
    return F.conv2d(x, weights, biases, stride=stride, padding=padding)


def forward_scale(x: Tensor, weights: Tensor, biases: Tensor, stride: int, padding: int) -> Tensor:
    """Error scale: the result, its root mean square, and what is lost in whole tiles.

    Algorithms by transforms add elements before they multiply: for them stands the largest product
    of sums of two.
    """
    result = forward_fn(x, weights, biases, stride, padding)
    tile = 4 * x.abs().amax() * weights.abs().amax()
    return result.abs() + result.square().mean().sqrt() + tile
