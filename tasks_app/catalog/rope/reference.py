"""Reference of `rope`: the rotary position embedding of neighbouring elements."""

from __future__ import annotations

import math

import torch
from torch import Tensor

VARIED = ("input",)


def make_inputs(M: int, D: int, base: float) -> dict[str, Tensor]:
    """A float32 matrix (M, D), uniform in [-1, 1)."""
    return {"input": torch.rand(M, D) * 2 - 1}


def forward_fn(input: Tensor, base: float) -> Tensor:
    """Return the rotated rows (M, D)."""
    wide = input.to(torch.promote_types(input.dtype, torch.float32))
    angles = _angles(wide, base)
    cosine, sine = torch.cos(angles), torch.sin(angles)
    even, odd = wide[:, 0::2], wide[:, 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(1)


def _angles(like: Tensor, base: float) -> Tensor:
    """By how much each pair turns (M, D / 2), in radians."""
    rows, columns = like.shape
    positions = torch.arange(rows, dtype=like.dtype, device=like.device)
    pairs = torch.arange(columns // 2, dtype=like.dtype, device=like.device)
    return positions[:, None] * torch.pow(base, pairs * (-2 / columns))


def forward_scale(input: Tensor, base: float, inner_eps: float) -> Tensor:
    """Error scale (M, D): the pair's size, and how far float32 is off in its angle.

    The power's relative error grows with its exponent, and the angle's size multiplies it.
    """
    columns = input.shape[1]
    exponents = torch.arange(columns // 2) * (2 / columns * math.log(base))
    unsure = inner_eps * _angles(input, base) * (1 + exponents)
    sizes = input[:, 0::2].abs() + input[:, 1::2].abs()
    return (sizes * (1 + unsure)).repeat_interleave(2, dim=1)
