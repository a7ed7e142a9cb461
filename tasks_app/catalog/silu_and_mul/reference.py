"""Reference of `silu_and_mul`: half of each row gated by the other half's sigmoid linear unit."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

FLUSHED = 2.0**-102
"""2^24 times the smallest normal float32: below that a sigmoid may be flushed to zero."""


def make_inputs(B: int, D: int) -> dict[str, Tensor]:
    """Float32 rows (B, 2 D): gates, magnitudes spread from 1e-3 to beyond 100; normal values.

    Within [-1, 1) no exponential overflows.
    """
    spread = 10.0 ** (torch.rand(B, D) * 5 - 3)
    gate, value = torch.randn(B, D) * spread, torch.randn(B, D)
    return {"in": torch.cat((gate, value), dim=1)}


def forward_fn(in_: Tensor) -> Tensor:
    """Return gate * sigmoid(gate) * value (B, D)."""
    gate, value = in_.chunk(2, dim=1)
    return F.silu(gate) * value


def forward_scale(in_: Tensor, inner_eps: float) -> Tensor:
    """Error scale (B, D): relative, growing with the exponent; what a flushed sigmoid loses."""
    gate, value = in_.chunk(2, dim=1)
    inner = inner_eps * gate.abs() * torch.sigmoid(-gate)
    flushed = inner_eps * FLUSHED * (1 + gate.abs()) * value.abs()
    return (F.silu(gate) * value).abs() * (1 + inner) + flushed
