"""Reference of `elu`: the exponential linear unit of each element."""

from __future__ import annotations

from ctypes import c_float

import torch
import torch.nn.functional as F
from torch import Tensor


def make_inputs(N: int, alpha: float) -> dict[str, Tensor | float]:
    """Float32 vector (N): random signs, magnitudes spread from 1e-3 to beyond 100.

    Within [-1, 1) no exponential overflows. `alpha` is rounded to the float that a kernel gets.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    return {"input": torch.randn(N) * spread, "alpha": c_float(alpha).value}


def forward_fn(input: Tensor, alpha: float) -> Tensor:
    """Return input where it is positive, else alpha * (exp(input) - 1) (N)."""
    return F.elu(input, alpha)


def forward_scale(input: Tensor, alpha: float, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and the error of the exponential from which 1 is subtracted."""
    negative = input.clamp(max=0)
    lost = torch.where(input > 0, 0, negative.exp() * (1 - negative))
    return F.elu(input, alpha).abs() + 2 * inner_eps * abs(alpha) * lost
