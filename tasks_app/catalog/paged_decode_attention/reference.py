"""Reference of `paged_decode_attention`: one query a sequence, keys and values in pages."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("key_cache", "value_cache")
"""Not the queries: with both a thousand times as large, float32 knows no score to a digit."""

UNDERFLOW = 2.0**-92
"""exp(-80) over the epsilon of float32: kernels keep exponents above that, or flush to zero."""

HARD = 1 / 4
"""Share of the queries that are hard, at random: the others look like those that are timed."""

SPREAD = 2.0
"""Standard deviation of the scores: a few keys count for each query, and the others a little."""

PEAK = 200.0
"""Score of a sequence's first key, or of its newest, for the hard queries.

exp overflows there in float32 unless the maximum over all keys is subtracted first.
"""

UNEVEN = (0.5, 0.9)
"""By how much of the mean length a sequence is longer or shorter than it, at least and at most."""


def make_inputs(
    batch: int, num_tokens: int, num_heads: int, num_kv_heads: int, head_dim: int, page_size: int
) -> dict[str, Tensor | int]:
    """A query for each sequence, the pages of all, and where each sequence's pages are.

    num_tokens: in the cache, of all sequences together. The places of `page_table` behind a
    sequence's pages hold pages of others, and the slots behind its last token hold other numbers.
    """
    num_pages = (num_tokens + batch * (page_size - 1)) // page_size
    longest = min(num_tokens, 2 * -(-num_tokens // batch))
    lengths = _lengths(batch, num_tokens)
    page_table = _page_table(lengths, num_pages, -(-longest // page_size), page_size)
    return {
        "query": torch.randn(batch, num_heads, head_dim) * SPREAD,
        "key_cache": torch.randn(num_pages, page_size, num_kv_heads, head_dim),
        "value_cache": torch.randn(num_pages, page_size, num_kv_heads, head_dim) + 0.2,
        "page_table": page_table.to(torch.int32),
        "lengths": lengths.to(torch.int32),
        "max_pages": page_table.shape[1],
    }


def make_hard_inputs(
    batch: int, num_tokens: int, num_heads: int, num_kv_heads: int, head_dim: int, page_size: int
) -> dict[str, Tensor | int]:
    """The same, but `HARD` of the queries have a `PEAK`."""
    inputs = make_inputs(batch, num_tokens, num_heads, num_kv_heads, head_dim, page_size)
    lengths, page_table = inputs["lengths"].long(), inputs["page_table"].long()
    query, count = inputs["query"], batch * num_heads
    number = torch.randperm(count).view(batch, num_heads, 1)
    hard = number < count * HARD
    for chosen, token in ((number % 2 == 0, lengths - 1), (number % 2 == 1, lengths * 0)):
        page = page_table.gather(1, token[:, None] // page_size)[:, 0]
        own = inputs["key_cache"][page, token % page_size]
        own = own.repeat_interleave(num_heads // num_kv_heads, dim=1)
        peaks = own * (PEAK * math.sqrt(head_dim) / own.square().sum(-1, keepdim=True))
        query = torch.where(hard & chosen, peaks, query)
    return inputs | {"query": query}


def _lengths(batch: int, num_tokens: int) -> Tensor:
    """Uneven lengths (batch) from 1 that sum to `num_tokens`: pairs around the mean."""
    mean, rest = divmod(num_tokens, batch)
    least, most = UNEVEN
    parts = least + (most - least) * torch.rand(batch // 2, dtype=torch.float64)
    apart = (parts * mean).to(torch.int64)
    even = torch.zeros(batch % 2, dtype=torch.int64)
    lengths = mean + torch.cat((apart, -apart, even)) + (torch.arange(batch) < rest)
    return lengths[torch.randperm(batch)]


def _page_table(lengths: Tensor, num_pages: int, width: int, page_size: int) -> Tensor:
    """Pages (batch, width) in random order, no page in two sequences up to their lengths."""
    counts = (lengths + page_size - 1) // page_size
    begin = counts.cumsum(0) - counts
    place = (begin[:, None] + torch.arange(width)) % num_pages
    return torch.randperm(num_pages)[place]


def forward_fn(
    query: Tensor, key_cache: Tensor, value_cache: Tensor, page_table: Tensor, lengths: Tensor
) -> Tensor:
    """Return softmax(query keys^T / sqrt(head_dim)) values (batch, num_heads, head_dim)."""
    wide = torch.promote_types(query.dtype, torch.float32)
    q, k, v = _grouped(query.to(wide), key_cache, value_cache, page_table)
    weights = torch.softmax(_scores(q, k, lengths), -1)
    return (weights @ v).flatten(1, 2)


def _grouped(
    query: Tensor, key_cache: Tensor, value_cache: Tensor, page_table: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries (batch, kv heads, group, head_dim), and keys and values of a table's pages."""
    kv_heads = key_cache.shape[2]
    found = (cache[page_table.long()].flatten(1, 2) for cache in (key_cache, value_cache))
    k, v = (each.transpose(1, 2).to(query.dtype) for each in found)
    return query.unflatten(1, (kv_heads, -1)), k, v


def _scores(q: Tensor, k: Tensor, lengths: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~_held(k.shape[2], lengths)[:, None, None], -math.inf)


def _held(count: int, lengths: Tensor) -> Tensor:
    """Which of the places (batch, count) hold a token of the sequence."""
    return torch.arange(count, device=lengths.device) < lengths[:, None]


def baseline_fn(
    query: Tensor, key_cache: Tensor, value_cache: Tensor, page_table: Tensor, lengths: Tensor
) -> Tensor:
    """Pages gathered, and torch's own attention over them in the narrow dtype."""
    k, v = (
        cache[page_table.long()].flatten(1, 2).transpose(1, 2) for cache in (key_cache, value_cache)
    )
    held = _held(k.shape[2], lengths)[:, None, None]
    found = F.scaled_dot_product_attention(query[:, :, None], k, v, held, enable_gqa=True)
    return found.squeeze(2)


def forward_scale(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    page_table: Tensor,
    lengths: Tensor,
    inner_eps: float,
) -> Tensor:
    """Error scale: the result, its terms, and the weights' errors in float32 arithmetic."""
    q, k, v = _grouped(query, key_cache, value_cache, page_table)
    scores = _scores(q, k, lengths)
    weights = torch.softmax(scores, -1)
    result = weights @ v
    products = torch.sqrt(q.square() @ k.square().mT / q.shape[-1])
    unsure = 1 + products + scores.abs() + (scores.amax(-1, keepdim=True) - scores)
    moved = torch.where(scores.isfinite(), weights * unsure + UNDERFLOW, 0.0).square()
    # moved @ (v - result)^2: an error of all scores alike changes nothing.
    inner = moved @ v.square() - 2 * result * (moved @ v)
    inner = inner + result.square() * moved.sum(-1, keepdim=True)
    terms = result.square() + weights.square() @ v.square()
    scale = terms.sqrt() + inner_eps * inner.clamp(min=0).sqrt()
    return scale.flatten(1, 2)
