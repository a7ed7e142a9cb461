"""Reference of `triangle_attention`: a causal softmax attention of each channel by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

VARIED = ("query", "key", "value")

REACH = 8.0
"""Largest size of a score."""
HIDDEN = 0.25
"""Share of the positions that the mask hides."""

BLIND = 0.125
"""Share of the positions that see nothing at all."""
AT_ONCE = 1 << 28
"""Weights that are held in memory at a time."""


def make_inputs(
    batch_size: int, head_num: int, seq_length: int, head_dim: int
) -> dict[str, Tensor]:
    """Query, key and value (batch, heads, positions, channels); mask (batch, positions, positions).

    Keys and values are uniform in [-1, 1). Queries are wider: with the origin's [-1, 1) all
    weights are nearly alike. The mask holds 0 and 1; the last position sees itself.
    """
    shape = (batch_size, head_num, seq_length, head_dim)
    mask = torch.rand(batch_size, seq_length, seq_length) < HIDDEN
    mask |= torch.rand(batch_size, seq_length, 1) < BLIND
    mask[:, -1, -1] = False
    return {
        "query": (torch.rand(shape) * 2 - 1) * (REACH * math.sqrt(head_dim)),
        "key": torch.rand(shape) * 2 - 1,
        "value": torch.rand(shape) * 2 - 1,
        "attention_mask": mask.to(torch.float32),
    }


def forward_fn(query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor) -> Tensor:
    """Return the weighted means of the values (batch, heads, positions, channels)."""
    wide = torch.promote_types(query.dtype, torch.float32)
    query, key, value = query.to(wide), key.to(wide), value.to(wide)
    parts = []
    for low, high in _slices(query):
        weights = torch.softmax(_scores(query, key, attention_mask, low, high), 3).nan_to_num(0.0)
        parts.append((weights * value[:, :, None, :high]).sum(3))
    return torch.cat(parts, 2)


def _slices(query: Tensor) -> Iterator[tuple[int, int]]:
    """Ranges of positions whose weights fit into memory.

    All at once for a compiler: it computes scores where it needs them, and each range would cost
    it kernels of their own.
    """
    batch, heads, length, channels = query.shape
    step = max(1, AT_ONCE // (batch * heads * length * channels))
    if torch.compiler.is_compiling():
        step = length
    for low in range(0, length, step):
        yield low, min(low + step, length)


def _scores(query: Tensor, key: Tensor, mask: Tensor, low: int, high: int) -> Tensor:
    """Scores (batch, heads, high - low, high, channels); -inf where nothing is seen."""
    scores = query[:, :, low:high, None] * key[:, :, None, :high] / math.sqrt(query.shape[3])
    later = (
        torch.arange(high, device=key.device) > torch.arange(low, high, device=key.device)[:, None]
    )
    hidden = (mask[:, low:high, :high] > 0.5) | later
    return scores.masked_fill(hidden[:, None, :, :, None], -torch.inf)


def forward_scale(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor, inner_eps: float
) -> Tensor:
    """Error scale, of the result's shape: its size, and what float32 does before.

    That is the error of the scores, through the weights that they change, and of the sums. Terms
    that are alike are rounded alike, so an error of sums one by one grows with the length, not with
    its root: far below the largest weight each of them may lose the same part.
    """
    parts = []
    for low, high in _slices(query):
        scores = _scores(query, key, attention_mask, low, high)
        weights = torch.softmax(scores, 3).nan_to_num(0.0)
        unsure = scores.abs() + (scores.amax(3, keepdim=True) - scores)
        moved = weights * unsure.nan_to_num(0.0, posinf=0.0)
        values = value[:, :, None, :high]
        result = (weights * values).sum(3).abs()
        growth = 1 + (torch.arange(low, high) + 1.0)[:, None] / 8
        before = (weights * values.abs()).sum(3) * growth
        before = before + (moved * values.abs()).sum(3) + moved.sum(3) * result
        parts.append(result + inner_eps * before)
    return torch.cat(parts, 2)
