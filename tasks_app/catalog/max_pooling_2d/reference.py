"""Reference of `max_pooling_2d`: the largest element of each window."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def make_inputs(  # noqa: PLR0913, PLR0917  the parameters of a workload
    N: int, C: int, H: int, W: int, kernel_size: int, stride: int, padding: int
) -> dict[str, Tensor]:
    """The images (N, C, H, W), float32, uniform in [-1, 1); those of channel 0 are negative.

    There a padding with zeros is wrong.
    """
    values = torch.rand(N, C, H, W) * 2 - 1
    values[:, 0] = -values[:, 0].abs()
    return {"input": values}


def forward_fn(input: Tensor, kernel_size: int, stride: int, padding: int) -> Tensor:
    """Return the maxima (N, C, ...), as many along each direction as windows fit."""
    return functional.max_pool2d(input, kernel_size, stride, padding)
