"""Reference of `softmax`: softmax over the rows of a matrix."""

from __future__ import annotations

import torch
from torch import Tensor

SHIFT = 120.0
"""Shift of a hard row's logits: exp(120) overflows float32 and exp(-120) vanishes."""

PEAK = 140.0
"""By how much one logit exceeds the others in three of four hard rows: at an end, or anywhere.

A maximum that leaves out the end of a row overflows there; the other results are 0 in float32.
"""

HARD = 1 / 4
"""Share of the rows that are hard, at random places: the others look like those that are timed."""


def make_inputs(N: int, C: int) -> dict[str, Tensor]:
    """Float32 logits (N, C) with a standard deviation of 3."""
    return {"input": torch.randn(N, C) * 3}


def make_hard_inputs(N: int, C: int) -> dict[str, Tensor]:
    """The same, but `HARD` of the rows, and one at least, are shifted, or have a `PEAK`.

    A row with a peak looks like any other, except at one place.
    """
    number = torch.randperm(N)
    hard, kind = number < max(1, N * HARD), (number + torch.randint(4, (1,))) % 4
    shift = torch.where(torch.rand(N) < 1 / 2, SHIFT, -SHIFT) * (1 - torch.rand(N) / 4)
    place = torch.where(kind == 2, torch.randint(C, (N,)), torch.where(kind == 1, C - 1, 0))
    logits = torch.randn(N, C) * 3 + torch.where(hard & (kind == 3), shift, 0.0)[:, None]
    peak = torch.where(hard & (kind < 3), PEAK, 0.0)
    return {"input": logits.scatter_add_(1, place[:, None], peak[:, None])}


def forward_fn(input: Tensor) -> Tensor:
    """Return the softmax over the last dimension (N, C)."""
    return torch.softmax(input, dim=-1)


def forward_scale(input: Tensor, inner_eps: float) -> Tensor:
    """Error scale (N, C): relative, and in float32 growing with the exponents taken for an element.

    These are the logit's distance from the maximum, and the logsumexp of those that subtract it.
    Narrow logits repeat: a single running sum in float32 adds one of few terms again and again, and
    is off the same way each time.
    """
    largest = input.amax(dim=-1, keepdim=True)
    inner = (largest - input) + largest.abs() / 8
    if inner_eps != 1:
        inner = inner + input.shape[-1] / 32
    return torch.softmax(input, dim=-1) * (1 + inner_eps * inner)
