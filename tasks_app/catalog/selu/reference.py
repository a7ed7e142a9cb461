"""Reference of `selu`: the scaled exponential linear unit of each element."""

from __future__ import annotations

from ctypes import c_float

import torch
from torch import Tensor

HARD = 1 / 4
"""Share of hard elements, at random places: the others look like those that are timed."""


def make_inputs(N: int, alpha: float, scale: float) -> dict[str, Tensor | float]:
    """Float32 vector (N), normally distributed.

    `alpha` and `scale`, the kernel's `lambda`, are rounded to the floats that it gets.
    """
    factors = {"alpha": c_float(alpha).value, "lambda": c_float(scale).value}
    return {"input": torch.randn(N) * 2, **factors}


def make_hard_inputs(N: int, alpha: float, scale: float) -> dict[str, Tensor | float]:
    """The same, but the magnitudes of `HARD` of the elements are spread from 1e-3 to beyond 100.

    Within [-1, 1) no exponential overflows.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    spread = torch.where(torch.rand(N) < HARD, spread, 2.0)
    factors = {"alpha": c_float(alpha).value, "lambda": c_float(scale).value}
    return {"input": torch.randn(N) * spread, **factors}


def forward_fn(input: Tensor, alpha: float, lambda_: float) -> Tensor:
    """Return lambda * input where it is positive, else lambda * alpha * (exp(input) - 1) (N)."""
    return torch.ops.aten.elu(input, alpha, lambda_)


def forward_scale(input: Tensor, alpha: float, lambda_: float, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and the error of the exponential from which 1 is subtracted."""
    negative = input.clamp(max=0)
    lost = torch.where(input > 0, 0, negative.exp() * (1 - negative))
    size = torch.ops.aten.elu(input, alpha, lambda_).abs()
    return size + 2 * inner_eps * abs(lambda_ * alpha) * lost
