"""Reference of `cross_entropy_large_vocab`: the loss of each token of a language model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("logits",)

IGNORED = -100
"""Target of a token that does not count: its loss and its gradient are zero."""

IGNORED_SHARE = 8
"""One token in so many is ignored, rounded down."""

SHIFTS = (120.0, 200.0)
"""Least and largest shift of a hard row, up or down: exp overflows or vanishes in float32."""
HARD = 1 / 4
"""Share of the rows that are hard, at random places: the others look like those that are timed."""

PEAK = 140.0
"""By how much a row's last or first logit exceeds the others, or any other one, in hard rows.

A maximum that leaves out the end of a row overflows there.
"""


def make_inputs(num_tokens: int, num_classes: int) -> dict[str, Tensor]:
    """Logits (num_tokens, num_classes) with a standard deviation of 2, and int64 targets."""
    targets = torch.randint(0, num_classes, (num_tokens,))
    return {
        "logits": torch.randn(num_tokens, num_classes).mul_(2),
        "targets": _some_ignored(targets),
    }


def make_hard_inputs(num_tokens: int, num_classes: int) -> dict[str, Tensor]:
    """The same, but for hard rows, one at least: these are shifted by `SHIFTS`, and have `PEAK`s.

    Half of the peaks are targets: of all others the chance is too small to be seen beside 1.
    """
    shift, place, peak = _hard_rows(num_tokens, num_classes)
    logits = torch.randn(num_tokens, num_classes).mul_(2).add_(shift[:, None])
    targets = torch.randint(0, num_classes, (num_tokens,))
    targets = torch.where((peak > 0) & (torch.rand(num_tokens) < 1 / 2), place, targets)
    return {
        "logits": logits.scatter_add_(1, place[:, None], peak[:, None]),
        "targets": _some_ignored(targets),
    }


def _some_ignored(targets: Tensor) -> Tensor:
    count = len(targets)
    targets[torch.randperm(count)[: count // IGNORED_SHARE]] = IGNORED
    return targets


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


def forward_fn(logits: Tensor, targets: Tensor) -> Tensor:
    """Return logsumexp(row) - row[target] of each token, in float32 also of narrower logits.

    This is F.cross_entropy without a reduction, which widens logits as it reads them.
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    chances = torch.log_softmax(logits, 1, dtype=wide)
    return F.nll_loss(chances, targets, ignore_index=IGNORED, reduction="none")


def forward_scale(logits: Tensor, targets: Tensor, inner_eps: float) -> Tensor:
    """Error scale: the loss, the logits that it is a difference of, and the sum of exponentials.

    The logarithm makes the sum's relative error absolute. Narrow logits repeat: adding one of few
    terms again and again, a single running sum in float32 is off the same way each time.
    """
    loss, classes = forward_fn(logits, targets), logits.shape[1]
    addition = classes**0.5 / 2 if inner_eps == 1 else classes / 32
    scale = 2 * (1 + loss + logits.amax(1).abs() / 4 + addition)
    return torch.where(targets == IGNORED, 0.0, scale)


def backward_fn(grad_output: Tensor, logits: Tensor, targets: Tensor) -> tuple[Tensor]:
    """Return the gradient of the logits: grad_output * (softmax - one_hot)."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    grad = torch.softmax(logits, 1, dtype=wide)
    target = targets.clamp(min=0)[:, None]
    grad.scatter_add_(1, target, grad.new_full(target.shape, -1.0))
    factor = torch.where(targets == IGNORED, 0.0, grad_output.to(wide))
    return ((grad * factor[:, None]).to(logits.dtype),)


def backward_scale(
    grad_output: Tensor, logits: Tensor, targets: Tensor, inner_eps: float
) -> tuple[Tensor]:
    """Error scale: the element, and its errors in float32, which grow with the exponents taken.

    These are the logit's distance from the maximum, and the logsumexp of those that subtract it.
    """
    (grad,) = backward_fn(grad_output, logits, targets)
    largest = logits.amax(1, keepdim=True)
    exponents = 1 + (largest - logits) + largest.abs() / 8 + logits.shape[1] ** 0.5 / 2
    inner = torch.softmax(logits, 1) * exponents
    target = targets.clamp(min=0)[:, None]
    inner.scatter_add_(1, target, inner.new_ones(target.shape))
    factor = torch.where(targets == IGNORED, 0.0, grad_output.abs())
    return (grad.abs() + 2 * inner_eps * inner * factor[:, None],)
