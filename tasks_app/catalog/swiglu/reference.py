"""Reference of `swiglu`: values gated by their gates' sigmoid linear unit."""

from __future__ import annotations

from ctypes import c_float

import torch
from torch import Tensor

HARD = 1 / 4
"""Share of hard gates, at random places: the others look like those that are timed."""


def make_inputs(N: int, beta: float) -> dict[str, Tensor | float]:
    """Float32 gates (N) and values (N), normally distributed.

    `beta` is rounded to the float that a kernel gets.
    """
    gate, value = torch.randn(N) * 2, torch.randn(N)
    return {"gate_input": gate, "value_input": value, "beta": c_float(beta).value}


def make_hard_inputs(N: int, beta: float) -> dict[str, Tensor | float]:
    """The same, but the magnitudes of `HARD` of the gates are spread from 1e-3 to beyond 100.

    Within [-1, 1) no exponential overflows.
    """
    spread = 10.0 ** (torch.rand(N) * 5 - 3)
    spread = torch.where(torch.rand(N) < HARD, spread, 2.0)
    gate, value = torch.randn(N) * spread, torch.randn(N)
    return {"gate_input": gate, "value_input": value, "beta": c_float(beta).value}


def forward_fn(gate_input: Tensor, value_input: Tensor, beta: float) -> Tensor:
    """Return gate * sigmoid(beta * gate) * value (N)."""
    wide = torch.promote_types(gate_input.dtype, torch.float32)
    gate, value = gate_input.to(wide), value_input.to(wide)
    return gate * torch.sigmoid(beta * gate) * value


def forward_scale(gate_input: Tensor, value_input: Tensor, beta: float, inner_eps: float) -> Tensor:
    """Error scale (N): relative, growing with the exponent."""
    exponent = beta * gate_input
    inner = inner_eps * exponent.abs() * torch.sigmoid(-exponent)
    result = gate_input * torch.sigmoid(exponent) * value_input
    return result.abs() * (1 + inner)
