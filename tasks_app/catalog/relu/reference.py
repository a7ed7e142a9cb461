"""Reference of `relu`: the positive part of each element."""

from __future__ import annotations

import torch
from torch import Tensor

ZEROS = 1 / 64
"""Share of the elements that are zero, with the sign that they had."""


def make_inputs(N: int) -> dict[str, Tensor]:
    """Float32 vector (N): random signs, magnitudes spread from 1e-3 to beyond 100, some zeros."""
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    return {"input": torch.randn(N) * torch.where(torch.rand(N) < ZEROS, 0.0, spread)}


def forward_fn(input: Tensor) -> Tensor:
    """Return max(input, 0) (N)."""
    return torch.relu(input)


def forward_scale(input: Tensor) -> Tensor:
    """Error scale (N): none, a copy or a zero has no rounding."""
    return torch.zeros_like(input)
