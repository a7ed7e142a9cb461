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
