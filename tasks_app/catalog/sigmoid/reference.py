"""Reference of `sigmoid`: the logistic function of each element."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """Float32 vector (N): random signs, magnitudes spread from 1e-3 to beyond 100.

    Within [-1, 1) neither the exponential overflows nor the result saturates.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    return {"input": torch.randn(N) * spread}


def forward_fn(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-input)) (N)."""
    return torch.sigmoid(input)


def forward_scale(input: Tensor, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and that of an exponential grows with its exponent."""
    exponent = input.abs() * torch.sigmoid(-input)
    return torch.sigmoid(input) * (1 + inner_eps * exponent)
