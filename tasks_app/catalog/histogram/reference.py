"""Reference of `histogram`: how often each integer occurs."""

from __future__ import annotations

import torch
from torch import Tensor

RUN = 64
"""Elements at most that are equal one after the other by themselves, in every other RUN of them."""

MEAN_RUN = 16
"""Elements of a run on the average. Where one ends is drawn: no element follows from another."""


def make_inputs(N: int, bins: int, skew: float) -> dict[str, Tensor]:
    """Integers (N) in [0, bins), int32; one of them is the largest."""
    uniform = torch.rand(N, dtype=torch.float64)
    place = torch.arange(N)
    begins = (place // RUN % 2 == 0) | (place % RUN == 0) | (torch.rand(N) < 1 / MEAN_RUN)
    start = torch.where(begins, place, 0).cummax(0).values
    drawn = (uniform[start] ** (1 + skew) * bins).to(torch.int32).clamp(max=bins - 1)
    return {"input": drawn.scatter_(0, torch.randint(N, (1,)), bins - 1)}


def forward_fn(input: Tensor, bins: int) -> Tensor:
    """Return the counts (bins), int32."""
    return torch.bincount(input, minlength=bins).to(torch.int32)


def baseline_fn(input: Tensor, bins: int) -> Tensor:
    """The same (bins), on a GPU by torch.histc, which takes integers there and counts in them."""
    return torch.histc(input, bins, 0, bins - 1) if input.is_cuda else forward_fn(input, bins)
