"""Reference of `ols_regression`: coefficients of a linear model, by least squares."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NOISE = 0.5
"""Standard deviation of what the model does not explain."""


def make_inputs(n_samples: int, n_features: int) -> dict[str, Tensor]:
    """X (n_samples, n_features), uniform in [-1, 1), and y (n_samples), linear but for noise."""
    samples = torch.rand(n_samples, n_features) * 2 - 1
    explained = (samples * torch.randn(n_features)).sum(-1)
    return {"X": samples, "y": explained + NOISE * torch.randn(n_samples)}


def forward_fn(X: Tensor, y: Tensor) -> Tensor:
    """Return the coefficients (n_features), in float32 also for narrower samples."""
    wide = torch.promote_types(X.dtype, torch.float32)
    samples, wanted = X.to(wide), y.to(wide)
    gram, right = samples.T @ samples, samples.T @ wanted
    return torch.cholesky_solve(right[:, None], torch.linalg.cholesky(gram))[:, 0]


PARTS = 128
"""Ranges of samples at most whose products the baseline makes side by side: few features alone
would keep a GPU's multiprocessors idle."""


def baseline_fn(X: Tensor, y: Tensor) -> Tensor:
    """The same (n_features), products in parts, and a factorisation that nobody waits for."""
    wide = torch.promote_types(X.dtype, torch.float32)
    samples, features = X.shape
    parts = math.gcd(samples, PARTS)
    each = X.to(wide).view(parts, samples // parts, features)
    gram = torch.bmm(each.transpose(1, 2), each).sum(0)
    right = torch.bmm(y.to(wide).view(parts, 1, samples // parts), each).sum((0, 1))
    return torch.cholesky_solve(right[:, None], torch.linalg.cholesky_ex(gram)[0])[:, 0]


def forward_scale(X: Tensor, y: Tensor) -> Tensor:
    """Error scale (n_features): rounding of the normal equations, seen through their inverse.

    An element of X^T X or X^T y is off by as much as its size and the root of its summed squared
    products, and these errors are independent: their squares add up.
    """
    gram, right, beta = X.T @ X, X.T @ y, forward_fn(X, y)
    squares = X.square()
    of_gram = gram.abs() + torch.sqrt(squares.T @ squares)
    of_right = right.abs() + torch.sqrt(squares.T @ y.square())
    errors = of_gram.square() @ beta.square() + of_right.square()
    return beta.abs() + torch.sqrt(torch.linalg.inv(gram).square() @ errors)
