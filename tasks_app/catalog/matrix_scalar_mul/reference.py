"""Reference of `matrix_scalar_mul`: a matrix times a number."""

from __future__ import annotations

import math

import torch
from torch import Tensor

VARIED = ("A",)


def make_inputs(M: int, N: int) -> dict[str, Tensor | float]:
    """A float32 matrix A (M, N), uniform in [-1, 1), and a number in [-1, 1] that the shape gives.

    What is passed by value is the same in all calls of a workload, whatever the seed.
    """
    return {"A": torch.rand(M, N) * 2 - 1, "scalar": math.sin(M + N)}


def forward_fn(A: Tensor, scalar: float) -> Tensor:
    """Return scalar * A (M, N)."""
    return A * scalar


def forward_scale(A: Tensor, scalar: float) -> Tensor:
    """Error scale |scalar * A| (M, N): there is one rounding."""
    return (A * scalar).abs()
