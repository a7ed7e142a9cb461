"""Reference of `stencil_2d`: a step of diffusion on a plane, with a fixed boundary."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(nx: int, ny: int, r: float) -> dict[str, Tensor]:
    """The old grid (nx, ny), float32, uniform in [-1, 1)."""
    return {"u_old": torch.rand(nx, ny) * 2 - 1}


def forward_fn(u_old: Tensor, r: float) -> Tensor:
    """Return the grid after the step (nx, ny)."""
    old = u_old.to(torch.promote_types(u_old.dtype, torch.float32))
    new = old.clone()
    inner = old[1:-1, 1:-1]
    new[1:-1, 1:-1] = inner + r * (_neighbours(old) - 4 * inner)
    return new


def forward_scale(u_old: Tensor, r: float) -> Tensor:
    """Error scale (nx, ny): the summed sizes of the terms, and nothing where the grid is copied."""
    size = u_old.abs()
    scale = torch.zeros_like(size)
    inner = size[1:-1, 1:-1]
    scale[1:-1, 1:-1] = inner + abs(r) * (_neighbours(size) + 4 * inner)
    return scale


def _neighbours(grid: Tensor) -> Tensor:
    """The sum of the four neighbours of each inner point (nx - 2, ny - 2)."""
    return grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1]
