"""Reference of `resnet_block`: a basic residual block in inference, as trained."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("x",)
"""The inputs that take part in a workload's family of values: a variance must stay positive."""

EPS = 1e-5


def make_inputs(  # noqa: PLR0913, PLR0917 - the workload's parameters
    batch_size: int,
    in_channels: int,
    out_channels: int,
    height: int,
    width: int,
    stride: int,
    eps: float = EPS,
) -> dict[str, Tensor | int | float | None]:
    """A feature map (batch_size, in_channels, height, width) and the block's parameters.

    The identity is downsampled where the block changes the extents; its parameters are None
    elsewhere. Convolutions have no bias, as in the network itself: batch norm follows them.
    """
    downsample = stride != 1 or in_channels != out_channels
    none = dict.fromkeys(("bn_weight", "bn_bias", "bn_mean", "bn_var"))
    return {
        "x": torch.randn(batch_size, in_channels, height, width) + 0.2,
        "conv1_weight": _filters(out_channels, in_channels, 3),
        "conv1_bias": None,
        **_named("bn1_", _batch_norm(out_channels)),
        "conv2_weight": _filters(out_channels, out_channels, 3),
        "conv2_bias": None,
        **_named("bn2_", _batch_norm(out_channels)),
        "downsample_weight": _filters(out_channels, in_channels, 1) if downsample else None,
        "downsample_bias": None,
        **_named("downsample_", _batch_norm(out_channels, "bn_") if downsample else none),
        "stride": stride,
        "eps": eps,
    }


def _filters(out_channels: int, in_channels: int, size: int) -> Tensor:
    return torch.randn(out_channels, in_channels, size, size) / (in_channels * size**2) ** 0.5


def _batch_norm(channels: int, prefix: str = "") -> dict[str, Tensor]:
    """Weight, bias, mean and variance (channels) as training leaves them; some variances small."""
    variance = torch.rand(channels) * 1.5 + 0.5
    variance[::8] = 0.01
    return {
        f"{prefix}weight": torch.rand(channels) + 0.5,
        f"{prefix}bias": torch.randn(channels) * 0.3 + 0.1,
        f"{prefix}mean": torch.randn(channels) * 0.5,
        f"{prefix}var": variance,
    }


def _named(prefix: str, values: dict[str, Tensor] | dict[str, None]) -> dict[str, Tensor | None]:
    return {prefix + name: value for name, value in values.items()}


def forward_fn(  # noqa: PLR0913, PLR0917 - in the order of robust-kbench's task
    x: Tensor,
    conv1_weight: Tensor,
    conv1_bias: Tensor | None,
    bn1_weight: Tensor,
    bn1_bias: Tensor,
    bn1_mean: Tensor,
    bn1_var: Tensor,
    conv2_weight: Tensor,
    conv2_bias: Tensor | None,
    bn2_weight: Tensor,
    bn2_bias: Tensor,
    bn2_mean: Tensor,
    bn2_var: Tensor,
    downsample_weight: Tensor | None,
    downsample_bias: Tensor | None,
    downsample_bn_weight: Tensor | None,
    downsample_bn_bias: Tensor | None,
    downsample_bn_mean: Tensor | None,
    downsample_bn_var: Tensor | None,
    stride: int,
    eps: float,
) -> Tensor:
    """Return relu(bn2(conv2(relu(bn1(conv1(x))))) + identity)."""
    inner = F.conv2d(x, conv1_weight, conv1_bias, stride=stride, padding=1)
    inner = F.batch_norm(inner, bn1_mean, bn1_var, bn1_weight, bn1_bias, eps=eps)
    inner = F.conv2d(F.relu(inner), conv2_weight, conv2_bias, padding=1)
    inner = F.batch_norm(inner, bn2_mean, bn2_var, bn2_weight, bn2_bias, eps=eps)
    identity = x
    if downsample_weight is not None:
        identity = F.conv2d(x, downsample_weight, downsample_bias, stride=stride)
        identity = F.batch_norm(
            identity,
            downsample_bn_mean,
            downsample_bn_var,
            downsample_bn_weight,
            downsample_bn_bias,
            eps=eps,
        )
    return F.relu(inner + identity)


def forward_scale(  # noqa: PLR0913, PLR0917
    x: Tensor,
    conv1_weight: Tensor,
    conv1_bias: Tensor | None,
    bn1_weight: Tensor,
    bn1_bias: Tensor,
    bn1_mean: Tensor,
    bn1_var: Tensor,
    conv2_weight: Tensor,
    conv2_bias: Tensor | None,
    bn2_weight: Tensor,
    bn2_bias: Tensor,
    bn2_mean: Tensor,
    bn2_var: Tensor,
    downsample_weight: Tensor | None,
    downsample_bias: Tensor | None,
    downsample_bn_weight: Tensor | None,
    downsample_bn_bias: Tensor | None,
    downsample_bn_mean: Tensor | None,
    downsample_bn_var: Tensor | None,
    stride: int,
    eps: float,
) -> Tensor:
    """Error scale: the result, its root mean square, and what convolutions lose in whole tiles.

    That of the first one is carried on by the second.
    """
    given = locals()
    result = forward_fn(**given)
    inner = F.conv2d(x, conv1_weight, conv1_bias, stride=stride, padding=1)
    inner = F.relu(F.batch_norm(inner, bn1_mean, bn1_var, bn1_weight, bn1_bias, eps=eps))
    first = (bn1_weight * torch.rsqrt(bn1_var + eps)).abs() * _tile(x, conv1_weight)
    carried = (conv2_weight.square().sum((2, 3)) @ first.square()).sqrt()
    factor = (bn2_weight * torch.rsqrt(bn2_var + eps)).abs()
    tiles = factor * (carried + _tile(inner, conv2_weight))
    return result.abs() + result.square().mean().sqrt() + tiles[:, None, None]


def _tile(first: Tensor, second: Tensor) -> Tensor:
    """The largest product: algorithms by transforms err as it is large."""
    return first.abs().amax() * second.abs().amax()
