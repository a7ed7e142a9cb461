"""Reference of `scaled_sum`: a vector times a number, plus another vector."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor | float]:
    """Float32 vectors x and y (N), and a number that is the same in all calls of a workload.

    Inputs are drawn anew for every call. `alpha` is about 1, so that neither vector drowns the
    other, and must depend on the workload alone.
    """
    return {"x": torch.randn(N), "y": torch.randn(N), "alpha": 1.25 + 0.5 * math.sin(N)}


def forward_fn(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    """Return alpha * x + y (N); run in float64, this is the expected result."""
    return x * alpha + y


def baseline_fn(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    """The same in one operation of torch: timed in place of forward_fn, never judged by."""
    return torch.add(y, x, alpha=alpha)


def forward_scale(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    """Error scale |alpha * x| + |y| (N): the product and the sum are rounded."""
    return (x * alpha).abs() + y.abs()
