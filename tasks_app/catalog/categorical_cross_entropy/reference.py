"""Reference of `categorical_cross_entropy`: the mean loss of samples with integer labels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SHIFT = 120.0
"""What is added to hard rows, or taken off them: exp(120) overflows float32, exp(-120) is 0."""
HARD = 2 / 5
"""Share of the rows that are hard, at random places: the others look like those that are timed."""

VARIED = ("logits",)


def make_inputs(N: int, C: int) -> dict[str, Tensor]:
    """Logits (N, C), normally distributed; labels (N), int32.

    The first and the last sample have the last and the first class.
    """
    logits = torch.randn(N, C)
    labels = torch.randint(0, C, (N,), dtype=torch.int32)
    labels[-1] = 0
    labels[0] = C - 1
    return {"logits": logits, "true_labels": labels}


def make_hard_inputs(N: int, C: int) -> dict[str, Tensor]:
    """The same, but `HARD` of the rows, and one at least, are far from zero."""
    inputs = make_inputs(N, C)
    hard = torch.randperm(N) < max(1, N * HARD)
    shift = torch.where(torch.rand(N) < 1 / 2, SHIFT, -SHIFT)
    inputs["logits"] += torch.where(hard, shift, 0.0)[:, None]
    return inputs


def forward_fn(logits: Tensor, true_labels: Tensor) -> Tensor:
    """Return the mean loss, shape (1), in float32 also of narrower logits."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return functional.cross_entropy(wide, true_labels.long()).reshape(1)


def baseline_fn(logits: Tensor, true_labels: Tensor) -> Tensor:
    """The same, shape (1): logits are widened as they are read, where the library can."""
    logs = torch.log_softmax(logits, 1, dtype=torch.promote_types(logits.dtype, torch.float32))
    return functional.nll_loss(logs, true_labels.long()).reshape(1)


def forward_scale(logits: Tensor, true_labels: Tensor) -> Tensor:
    """Error scale, shape (1): the loss, and the root of the samples' summed squared errors.

    A sample's logsumexp and its label's logit are rounded as they are large, and its sum of
    exponentials relative to itself, which the logarithm makes absolute.
    """
    total = torch.logsumexp(logits, dim=-1)
    chosen = logits.gather(1, true_labels.long()[:, None])[:, 0]
    errors = 1 + total.abs() + chosen.abs()
    return ((total - chosen).mean() + torch.linalg.vector_norm(errors) / errors.numel()).reshape(1)
