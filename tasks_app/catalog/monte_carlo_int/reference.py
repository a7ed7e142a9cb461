"""Reference of `monte_carlo_int`: an integral estimated by the mean of random samples."""

from __future__ import annotations

import torch
from torch import Tensor

SIZE = 10.0
"""Largest magnitude of a sample."""


def make_inputs(N: int) -> dict[str, Tensor | float]:
    """Samples (N), uniform in [-SIZE, SIZE), and the interval's ends a < 0 < b, which N decides.

    The samples have mean zero: with any other mean their sum would average the rounding of
    low-precision inputs away, and a low-precision kernel would pass.
    """
    samples = (torch.rand(N) * 2 - 1) * SIZE
    return {"y_samples": samples, "a": -0.5 - N % 997, "b": 0.25 + N % 499}


def forward_fn(y_samples: Tensor, a: float, b: float) -> Tensor:
    """Return (b - a) * mean(y_samples), shape (1)."""
    wide = torch.promote_types(y_samples.dtype, torch.float32)
    return (y_samples.mean(dtype=wide) * (b - a)).reshape(1)


def forward_scale(y_samples: Tensor, a: float, b: float) -> Tensor:
    """Error scale, shape (1): the result's size, and the root of the summed squared terms.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    size = y_samples.sum().abs() + torch.linalg.vector_norm(y_samples)
    return (size * (b - a) / len(y_samples)).reshape(1)
