"""Reference of `softmax`: softmax over the rows of a matrix."""

from __future__ import annotations

import torch
from torch import Tensor

SHIFT = 120.0
"""Largest shift of a row's logits: exp(120) overflows float32 and exp(-120) vanishes."""

PEAK = 140.0
"""By how much a row's last or first logit exceeds the others, in two of every eight rows.

A maximum that leaves out the end of a row overflows there; the other results are 0 in float32.
"""


def make_inputs(N: int, C: int) -> dict[str, Tensor]:
    """Float32 logits (N, C): standard deviation 3, each row shifted by up to +-`SHIFT`; `PEAK`s."""
    shift = torch.linspace(SHIFT, -SHIFT, N) if N > 1 else torch.full((1,), SHIFT)
    logits = torch.randn(N, C) * 3 + shift[:, None]
    logits[5::8, -1] += PEAK
    logits[6::8, 0] += PEAK
    return {"input": logits}


def forward_fn(input: Tensor) -> Tensor:
    """Return the softmax over the last dimension (N, C)."""
    return torch.softmax(input, dim=-1)


def forward_scale(input: Tensor) -> Tensor:
    """Error scale (N, C): relative, growing with the exponents taken for an element.

    These are the logit's distance from the maximum, and the logsumexp of those that subtract it.
    """
    largest = input.amax(dim=-1, keepdim=True)
    return torch.softmax(input, dim=-1) * (1 + (largest - input) + largest.abs() / 8)
