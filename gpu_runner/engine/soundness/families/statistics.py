"""Variances and softmaxes in one pass over their elements."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.engine.soundness.families.contractions import at_the_end, freedom, reduced
from gpu_runner.engine.soundness.families.sums import in_lanes
from gpu_runner.engine.soundness.operations import Step

MOST_STEPS = 512  # of a running maximum


def one_pass(step: Step) -> object:
    """A variance as the mean of the squares, less the square of the mean."""
    terms = _terms(step)
    if terms is None:
        return None
    size = terms.shape[-1]
    mean = in_lanes(terms) / size
    squares = (in_lanes(terms * terms) / size - mean * mean).clamp(min=0)
    return _as_result(step, squares, mean)


def welford(step: Step) -> object:
    """Welford's running mean and squares in lanes, which are merged as Chan and others have it."""
    terms = _terms(step)
    if terms is None:
        return None
    size = terms.shape[-1]
    lanes = math.ceil(size / MOST_STEPS)
    whole = size // lanes * lanes
    rows = terms[..., :whole].reshape(*terms.shape[:-1], -1, lanes).movedim(-2, 0)
    mean, squares = torch.zeros_like(rows[0]), torch.zeros_like(rows[0])
    for count, value in enumerate(rows, start=1):
        before = value - mean
        mean = mean + before / count
        squares = squares + before * (value - mean)
    found = [(whole // lanes, mean[..., i], squares[..., i]) for i in range(lanes)]
    found += [(1, terms[..., i], torch.zeros_like(terms[..., i])) for i in range(whole, size)]
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        found = [_merged(*pair) for pair in pairs] + found[len(found) - len(found) % 2 :]
    _, mean, squares = found[0]
    return _as_result(step, squares / size, mean)


Moments = tuple[int, Tensor, Tensor]


def _merged(first: Moments, second: Moments) -> Moments:
    (n, mean, squares), (m, other, others) = first, second
    apart = other - mean
    return (
        n + m,
        mean + apart * (m / (n + m)),
        squares + others + apart * apart * (n * m / (n + m)),
    )


def _terms(step: Step) -> Tensor | None:
    """What a variance in float32 is of."""
    if step.name != "var_mean" or step.result[0].dtype is not torch.float32:
        return None
    terms = at_the_end(step.args[0], reduced(step))
    return terms if terms.shape[-1] else None


def _as_result(step: Step, variance: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    size = step.args[0].numel() // mean.numel()
    variance = variance * (size / freedom(step, size))
    return variance.reshape(step.result[0].shape), mean.reshape(step.result[1].shape)


def online_softmax(step: Step) -> object:
    """A softmax whose sum is scaled anew whenever a part has a larger maximum."""
    if step.name not in ("_softmax", "_log_softmax", "_safe_softmax"):
        return None
    value, dim = step.args[0], step.args[1]
    if value.dtype is not torch.float32 or not value.numel():
        return None
    rows = value.movedim(dim, -1)
    largest, total = _running(rows)
    if step.name == "_log_softmax":
        return ((rows - largest) - torch.log(total)).movedim(-1, dim)
    result = (torch.exp(rows - largest) / total).movedim(-1, dim)
    return result.nan_to_num(0.0) if step.name == "_safe_softmax" else result


def _running(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest element of each row, and the sum of exponentials below it (..., 1)."""
    size = math.ceil(rows.shape[-1] / MOST_STEPS)
    padded = F.pad(rows, (0, -rows.shape[-1] % size), value=-math.inf)
    parts = padded.reshape(*rows.shape[:-1], -1, size)
    largest = torch.full_like(rows[..., :1], torch.finfo(torch.float32).min)
    total = torch.zeros_like(largest)
    for part in parts.movedim(-2, 0):
        new = torch.maximum(largest, part.amax(-1, keepdim=True))
        total = total * torch.exp(largest - new) + torch.exp(part - new).sum(-1, keepdim=True)
        largest = new
    return largest, total
