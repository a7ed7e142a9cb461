"""Reference of `elu`: the exponential linear unit of each element."""

from __future__ import annotations

from ctypes import c_float

import torch
import torch.nn.functional as F
from torch import Tensor

HARD = 1 / 4
"""Share of hard elements, at random places: the others look like those that are timed."""


def make_inputs(N: int, alpha: float) -> dict[str, Tensor | float]:
    """Float32 vector (N), normally distributed.

    `alpha` is rounded to the float that a kernel gets.
    """
    return {"input": torch.randn(N) * 2, "alpha": c_float(alpha).value}


def make_hard_inputs(N: int, alpha: float) -> dict[str, Tensor | float]:
    """The same, but the magnitudes of `HARD` of the elements are spread from 1e-3 to beyond 100.

    Within [-1, 1) no exponential overflows.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    spread = torch.where(torch.rand(N) < HARD, spread, 2.0)
    return {"input": torch.randn(N) * spread, "alpha": c_float(alpha).value}


def forward_fn(input: Tensor, alpha: float) -> Tensor:
    """Return input where it is positive, else alpha * (exp(input) - 1) (N)."""
    return F.elu(input, alpha)


def forward_scale(input: Tensor, alpha: float, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and the error of the exponential from which 1 is subtracted."""
    negative = input.clamp(max=0)
    lost = torch.where(input > 0, 0, negative.exp() * (1 - negative))
    return F.elu(input, alpha).abs() + 2 * inner_eps * abs(alpha) * lost
