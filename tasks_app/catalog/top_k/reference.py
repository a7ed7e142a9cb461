"""Reference of `top_k`: the largest elements of a vector and their indices."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int, k: int, masked: float = 0.0) -> dict[str, Tensor]:
    """A float32 vector (N) of which a share of `masked` is -inf.

    Reciprocals of numbers in [-1, 1): the largest of evenly spread ones are nearly all alike.
    """
    values = (torch.rand(N) * 2 - 1).reciprocal().clamp(-1e7, 1e7)
    values[torch.rand(N) < masked] = -torch.inf
    return {"input": values}


def forward_fn(input: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the `k` largest elements in descending order, and their indices in int32 (k each).

    The lower index comes first among equals, which torch.topk leaves open: hence the stable sort.
    """
    values, indices = torch.sort(input, descending=True, stable=True)
    return values[:k], indices[:k].to(torch.int32)
