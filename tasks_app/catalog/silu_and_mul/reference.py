"""Reference of `silu_and_mul`: half of each row gated by the other half's sigmoid linear unit."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

HARD = 1 / 4
"""Share of hard gates, at random places: the others look like those that are timed."""


def make_inputs(B: int, D: int) -> dict[str, Tensor]:
    """Float32 rows (B, 2 D) of gates and values, normally distributed."""
    gate, value = torch.randn(B, D) * 2, torch.randn(B, D)
    return {"in": torch.cat((gate, value), dim=1)}


def make_hard_inputs(B: int, D: int) -> dict[str, Tensor]:
    """The same, but the magnitudes of `HARD` of the gates are spread from 1e-3 to beyond 100.

    Within [-1, 1) no exponential overflows.
    """
    spread = 10.0 ** (torch.rand(B, D) * 5 - 3)
    spread = torch.where(torch.rand(B, D) < HARD, spread, 2.0)
    gate, value = torch.randn(B, D) * spread, torch.randn(B, D)
    return {"in": torch.cat((gate, value), dim=1)}


def forward_fn(in_: Tensor) -> Tensor:
    """Return gate * sigmoid(gate) * value (B, D)."""
    gate, value = in_.chunk(2, dim=1)
    return F.silu(gate) * value


def forward_scale(in_: Tensor, inner_eps: float) -> Tensor:
    """Error scale (B, D): relative, growing with the exponent."""
    gate, value = in_.chunk(2, dim=1)
    inner = inner_eps * gate.abs() * torch.sigmoid(-gate)
    return (F.silu(gate) * value).abs() * (1 + inner)
