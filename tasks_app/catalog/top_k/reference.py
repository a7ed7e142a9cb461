"""Reference of `top_k`: the largest elements of a vector and their indices."""

from __future__ import annotations

import torch
from torch import Tensor

HARD = 1 / 4
"""Share of hard elements, at random places: the others look like those that are timed."""


def make_inputs(N: int, k: int, masked: float = 0.0) -> dict[str, Tensor]:
    """A float32 vector (N), normally distributed, of which a share of `masked` is -inf."""
    return {"input": torch.randn(N).masked_fill(torch.rand(N) < masked, -torch.inf)}


def make_hard_inputs(N: int, k: int, masked: float = 0.0) -> dict[str, Tensor]:
    """The same, but `HARD` of the elements are reciprocals of numbers in [-1, 1).

    The largest of evenly spread ones are nearly all alike; these are of many magnitudes.
    """
    far = (torch.rand(N) * 2 - 1).reciprocal().clamp(-1e7, 1e7)
    values = torch.where(torch.rand(N) < HARD, far, torch.randn(N))
    return {"input": values.masked_fill(torch.rand(N) < masked, -torch.inf)}


def forward_fn(input: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the `k` largest elements in descending order, and their indices in int32 (k each).

    The lower index comes first among equals, which torch.topk leaves open: hence the stable sort.
    """
    values, indices = torch.sort(input, descending=True, stable=True)
    return values[:k], indices[:k].to(torch.int32)
