"""Reference of `sigmoid`: the logistic function of each element."""

from __future__ import annotations

import torch
from torch import Tensor

HARD = 1 / 4
"""Share of hard elements, at random places: the others look like those that are timed."""


def make_inputs(N: int) -> dict[str, Tensor]:
    """Float32 vector (N), normally distributed, as activations are."""
    return {"input": torch.randn(N) * 2}


def make_hard_inputs(N: int) -> dict[str, Tensor]:
    """The same, but the magnitudes of `HARD` of the elements are spread from 1e-3 to beyond 100.

    Within [-1, 1) neither the exponential overflows nor the result saturates.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    spread = torch.where(torch.rand(N) < HARD, spread, 2.0)
    return {"input": torch.randn(N) * spread}


def forward_fn(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-input)) (N)."""
    return torch.sigmoid(input)


def forward_scale(input: Tensor, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and that of an exponential grows with its exponent."""
    exponent = input.abs() * torch.sigmoid(-input)
    return torch.sigmoid(input) * (1 + inner_eps * exponent)
