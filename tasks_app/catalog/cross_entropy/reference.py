"""Reference of `cross_entropy`: the mean negative log-likelihood of the target classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

SHIFTS = (120.0, 200.0)
"""Least and largest shift of a row's logits, up or down: exp overflows or vanishes in float32."""

PEAK = 140.0
"""By how much a row's last or first logit exceeds the others, in two of every eight rows.

A maximum that leaves out the end of a row overflows there.
"""


def make_inputs(batch_size: int, num_classes: int) -> dict[str, Tensor]:
    """Logits (batch_size, num_classes), each row shifted by `SHIFTS`, `PEAK`s; int64 targets."""
    low, high = SHIFTS
    size = torch.rand(batch_size, 1) * (high - low) + low
    shift = torch.where(torch.rand(batch_size, 1) < 0.5, -size, size)
    logits = torch.randn(batch_size, num_classes) * 4 + shift
    logits[5::8, -1] += PEAK
    logits[6::8, 0] += PEAK
    return {
        "predictions": logits,
        "targets": torch.randint(0, num_classes, (batch_size,)),
    }


def forward_fn(predictions: Tensor, targets: Tensor) -> Tensor:
    """Return the mean over rows of logsumexp(row) - row[target], a scalar tensor."""
    return F.cross_entropy(predictions, targets)


def forward_scale(predictions: Tensor, targets: Tensor) -> Tensor:
    """Error scale: half of the loss, and what the rounding of each row's logsumexp adds to it.

    The first is for the additions over the batch, the second grows with the size of the logits;
    its signs are random, so that it averages out over the batch.
    """
    rounding = predictions.amax(1).square().sum().sqrt() / predictions.shape[0]
    return F.cross_entropy(predictions, targets) / 2 + rounding


def backward_fn(grad_output: Tensor, predictions: Tensor, targets: Tensor) -> tuple[Tensor]:
    """Return the gradient of the logits: grad_output / batch_size * (softmax - one_hot)."""
    grad = torch.softmax(predictions, dim=1)
    grad.scatter_add_(1, targets[:, None], grad.new_full((grad.shape[0], 1), -1.0))
    return (grad * (grad_output / grad.shape[0]),)


def backward_scale(grad_output: Tensor, predictions: Tensor, targets: Tensor) -> tuple[Tensor]:
    """Error scale: relative to each softmax element, growing with the exponents taken for it.

    These are the logit's distance from the maximum, and the logsumexp of those that subtract it.
    """
    largest = predictions.amax(dim=1, keepdim=True)
    exponents = 1 + (largest - predictions) + largest.abs() / 8
    scale = torch.softmax(predictions, dim=1) * exponents
    scale.scatter_add_(1, targets[:, None], scale.new_ones(scale.shape[0], 1))
    return (scale * (grad_output.abs() / scale.shape[0]),)
