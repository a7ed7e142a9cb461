"""Reference of `hinge_loss`: the hinge loss of each element."""

from __future__ import annotations

import torch
from torch import Tensor


def make_inputs(N: int) -> dict[str, Tensor]:
    """Predictions (N), uniform in [-2, 2), and labels (N) of 0 or 1."""
    return {
        "predictions": torch.rand(N) * 4 - 2,
        "targets": torch.randint(0, 2, (N,), dtype=torch.int32),
    }


def forward_fn(predictions: Tensor, targets: Tensor) -> Tensor:
    """Return max(0, 1 - y * predictions) (N), with y = 1 where the label is 1, else -1."""
    wide = predictions.to(torch.promote_types(predictions.dtype, torch.float32))
    return (1 - torch.where(targets == 1, wide, -wide)).clamp(min=0)


def baseline_fn(predictions: Tensor, targets: Tensor) -> Tensor:
    """The same (N): a sign is a product's factor, and one rounding of 1 - y * p is all there is."""
    sign = torch.rsub(targets, 1, alpha=2)  # -y
    return (predictions * sign).add_(1).relu_()


def forward_scale(predictions: Tensor, targets: Tensor) -> Tensor:
    """Error scale (N): the loss itself, as it takes a single rounding."""
    return forward_fn(predictions, targets)
