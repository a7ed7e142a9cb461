"""Reference of `reverse_array`: a vector in reverse order."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """A float32 vector (N), uniform in [-1, 1)."""
    return {"input": torch.rand(N) * 2 - 1}


def forward_fn(input: Tensor) -> tuple[Tensor, Tensor]:
    """Return the vector in reverse order (N), and what must be left in `input` (N): itself."""
    return input.flip(0), input
