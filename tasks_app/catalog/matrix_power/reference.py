"""Reference of `matrix_power`: a matrix times itself, P factors in all."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def make_inputs(N: int, P: int) -> dict[str, Tensor]:
    """A float32 matrix A (N, N), uniform, of mean 0 and variance 1 / N.

    Its spectral radius is near 1 for any large N, so that its powers keep their size.
    """
    return {"A": (torch.rand(N, N) * 2 - 1) * math.sqrt(3 / N)}


def forward_fn(A: Tensor, P: int) -> Tensor:
    """Return A^P (N, N)."""
    return torch.linalg.matrix_power(A, P)


def forward_scale(A: Tensor, P: int, inner_eps: float) -> Tensor:
    """Error scale (N, N): each element's size, and the root of the summed squares of its errors.

    Whatever the order of the products, the rounding of one of them is carried on by others: it
    comes out as large as the products of squared elements of A^k and A^(P - k), for some k. The
    largest products of sums of two elements stand for Strassen's algorithm, whose errors are those
    of whole blocks; beside BF16 results they are errors of float32.
    """
    powers = [A]
    for _ in range(P - 1):
        powers.append(powers[-1] @ A)
    squares, blocks = torch.zeros_like(A), torch.zeros(())
    for first, second in zip(powers[:-1], powers[-2::-1], strict=True):
        squares += first.square() @ second.square()
        blocks += (4 * first.abs().amax() * second.abs().amax()).square()
    if inner_eps != 1:
        blocks *= (inner_eps * (4 + A.shape[0] ** 0.5)) ** 2
    return powers[-1].abs() + squares.sqrt() + blocks.sqrt()
