"""Reference of `sorting`: a vector in ascending order."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int, order: str = "random", infinite: float = 0.0) -> dict[str, Tensor]:
    """A float32 vector (N), uniform in [-1, 1).

    order: "random", or "descending" for one that is in the opposite order.
    infinite: share of the elements that are infinite, of both signs.
    """
    data = torch.rand(N) * 2 - 1
    if order == "descending":
        data = data.sort(descending=True).values
    endless = torch.copysign(torch.full((N,), torch.inf), data)
    return {"data": torch.where(torch.rand(N) < infinite, endless, data)}


def forward_fn(data: Tensor) -> Tensor:
    """Return the elements in ascending order (N)."""
    return torch.sort(data).values
