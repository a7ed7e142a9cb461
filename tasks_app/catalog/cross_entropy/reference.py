"""Reference of `cross_entropy`: the mean negative log-likelihood of the target classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

SHIFTS = (120.0, 200.0)
"""Least and largest shift of a hard row, up or down: exp overflows or vanishes in float32."""
HARD = 1 / 4
"""Share of the rows that are hard, at random places: the others look like those that are timed."""

PEAK = 140.0
"""By how much a row's last or first logit exceeds the others, or any other one, in hard rows.

A maximum that leaves out the end of a row overflows there.
"""


def make_inputs(batch_size: int, num_classes: int) -> dict[str, Tensor]:
    """Logits (batch_size, num_classes) with a standard deviation of 4, and int64 targets."""
    return {
        "predictions": torch.randn(batch_size, num_classes) * 4,
        "targets": torch.randint(0, num_classes, (batch_size,)),
    }


def make_hard_inputs(batch_size: int, num_classes: int) -> dict[str, Tensor]:
    """The same, but for hard rows, one at least: they are shifted by `SHIFTS` and have `PEAK`s."""
    inputs = make_inputs(batch_size, num_classes)
    shift, place, peak = _hard_rows(batch_size, num_classes)
    logits = inputs["predictions"] + shift[:, None]
    return inputs | {"predictions": logits.scatter_add_(1, place[:, None], peak[:, None])}


def _hard_rows(rows: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """What is added to a row, where a peak is and how high; nothing in rows that are not hard.

    A row with a peak alone looks like any other, except at one place.
    """
    low, high = SHIFTS
    number = torch.randperm(rows)
    hard, kind = number < max(1, rows * HARD), (number + torch.randint(4, (1,))) % 4
    size = torch.rand(rows) * (high - low) + low
    shift = torch.where(torch.rand(rows) < 1 / 2, -size, size)
    anywhere = torch.randint(classes, (rows,))
    place = torch.where(kind == 2, anywhere, torch.where(kind == 1, classes - 1, 0))
    shifted, peak = hard & (kind == 3), hard & (kind < 3)
    return torch.where(shifted, shift, 0.0), place, torch.where(peak, PEAK, 0.0)


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
