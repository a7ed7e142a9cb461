"""Reference of `gelu`: the Gaussian error linear unit of each element, by the error function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

VANISHED = 2.0**-28
"""Where the normal distribution is below this, 1 + erf is zero in float32."""

HARD = 1 / 4
"""Share of hard elements, at random places: the others look like those that are timed."""


def make_inputs(N: int) -> dict[str, Tensor]:
    """Float32 vector (N), normally distributed, as activations are."""
    return {"input": torch.randn(N) * 2}


def make_hard_inputs(N: int) -> dict[str, Tensor]:
    """The same, but the magnitudes of `HARD` of the elements are spread from 1e-3 to beyond 100.

    Within [-1, 1) little cancels, and no result vanishes.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    spread = torch.where(torch.rand(N) < HARD, spread, 2.0)
    return {"input": torch.randn(N) * spread}


def forward_fn(input: Tensor) -> Tensor:
    """Return input * normal distribution of input (N)."""
    return F.gelu(input)


def forward_scale(input: Tensor, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and the rounding of 1 + erf, which cancels at negative inputs.

    Far out on that side what is lost is the result itself, which falls faster than any rounding.
    """
    share = torch.special.erfc(input * -(0.5**0.5)) / 2
    return input.abs() * (share + inner_eps * torch.clamp(share / VANISHED, max=1))
