"""Reference of `reduction`: the sum of a vector."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """A float32 vector (N), uniform in [-1, 1).

    Its mean is zero: a sum with any other mean averages the rounding of its terms away, and a
    low-precision kernel would pass.
    """
    return {"input": torch.rand(N) * 2 - 1}


def forward_fn(input: Tensor) -> Tensor:
    """Return the sum, shape (1), in float32 also of narrower elements."""
    return input.sum(dtype=torch.promote_types(input.dtype, torch.float32)).reshape(1)


def forward_scale(input: Tensor) -> Tensor:
    """Error scale, shape (1): the sum's size, and the root of the summed squares.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    return (input.sum().abs() + torch.linalg.vector_norm(input)).reshape(1)
