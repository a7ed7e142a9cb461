"""Reference of `simpson_int`: an integral by the composite rule of Simpson."""

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
    """Return h / 3 * sum(y[i] + 4 * y[i + 1] + y[i + 2] for even i), shape (1)."""
    y = y_samples.to(torch.promote_types(y_samples.dtype, torch.float32))
    last = len(y) - 2
    segments = y[0:last:2] + 4 * y[1 : last + 1 : 2] + y[2::2]
    return (segments.sum() * ((b - a) / (len(y) - 1) / 3)).reshape(1)


def forward_scale(y_samples: Tensor, a: float, b: float) -> Tensor:
    """Error scale, shape (1): the result's size, and the root of the summed squared terms.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    last = len(y_samples) - 2
    terms = torch.cat([y_samples[0:last:2], 4 * y_samples[1 : last + 1 : 2], y_samples[2::2]])
    size = terms.sum().abs() + torch.linalg.vector_norm(terms)
    return (size * (b - a) / (len(y_samples) - 1) / 3).reshape(1)
