"""Reference of `prefix_sum`: the inclusive scan of a vector."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("input",)
OWN = 32
"""Elements of one thread, at most."""


def make_inputs(N: int) -> dict[str, Tensor]:
    """A float32 vector (N), uniform in [-1, 1)."""
    return {"input": torch.rand(N) * 2 - 1}


def forward_fn(input: Tensor) -> Tensor:
    """Return the sums of the elements up to each (N)."""
    wide = input.to(torch.promote_types(input.dtype, torch.float32))
    return torch.cumsum(wide, 0)


def forward_scale(input: Tensor, inner_eps: float) -> Tensor:
    """Error scale (N): each sum's size, and how float32 errs in adding up to there.

    Serial addition rounds every sum on the way; other orders round sums of fewer elements. Most
    parallel scans take a thread's own elements away from the sum behind them, so what errs with the
    largest of these is a sum that has only some of them.
    """
    sums = torch.cumsum(input, 0)
    squares = torch.cumsum(sums.square() + input.square(), 0)
    ahead = torch.nn.functional.pad(input.abs(), (0, OWN - 1))
    largest = torch.nn.functional.max_pool1d(ahead[None], OWN, stride=1)[0]
    return sums.abs() + inner_eps * (torch.sqrt(squares) + largest)
