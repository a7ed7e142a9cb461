"""Reference of `leaky_relu`: each element, times alpha where it is negative."""

from __future__ import annotations

from ctypes import c_float

import torch
import torch.nn.functional as F
from torch import Tensor


def make_inputs(N: int, alpha: float) -> dict[str, Tensor | float]:
    """Float32 vector (N): random signs, magnitudes spread from 1e-3 to beyond 100.

    `alpha` is rounded to the float that a kernel gets.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    return {"input": torch.randn(N) * spread, "alpha": c_float(alpha).value}


def forward_fn(input: Tensor, alpha: float) -> Tensor:
    """Return input where it is positive, else alpha * input (N)."""
    return F.leaky_relu(input, alpha)


def forward_scale(input: Tensor, alpha: float) -> Tensor:
    """Error scale (N): the product's size, and none where the input is copied."""
    return abs(alpha) * input.clamp(max=0).abs()
