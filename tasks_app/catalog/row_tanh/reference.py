"""Reference of `row_tanh`: the hyperbolic tangent of each element."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """Float32 vector (N): random signs, magnitudes spread from 1e-3 to beyond 100.

    Within [-1, 1) neither an exponential overflows nor the result saturates.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    return {"input": torch.randn(N) * spread}


def forward_fn(input: Tensor) -> Tensor:
    """Return tanh(input) (N)."""
    return torch.tanh(input)


def forward_scale(input: Tensor, inner_eps: float) -> Tensor:
    """Error scale (N): relative, and what is lost near zero where two terms near 1 cancel."""
    size = torch.tanh(input).abs()
    return size + 2 * inner_eps * (1 - size)
