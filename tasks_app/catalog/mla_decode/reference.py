"""Reference of `mla_decode`: latent attention, one query a sequence, latents in pages."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("cache",)
"""Not the queries: with both a thousand times as large, float32 knows no score to a digit."""

UNDERFLOW = 2.0**-92
"""exp(-80) over the epsilon of float32: kernels keep exponents above that, or flush to zero."""

HARD = 1 / 4
"""Share of the queries that are hard, at random: the others look like those that are timed."""

SPREAD = 2.0
"""Standard deviation of the scores: a few tokens count for each query, and the others a little."""

PEAK = 120.0
"""Score of a sequence's first token, or of its newest, for the hard queries.

exp overflows there in float32 unless the maximum over all tokens is subtracted first.
"""

UNEVEN = (0.5, 0.9)
"""By how much of the mean length a sequence is longer or shorter than it, at least and at most."""


def make_inputs(  # noqa: PLR0913, PLR0917  the parameters of a workload
    batch: int,
    num_tokens: int,
    num_heads: int,
    latent_dim: int,
    rope_dim: int,
    page_size: int,
    scale: float,
) -> dict[str, Tensor | int | float]:
    """A query for each sequence and head, the pages of all, and where each sequence's pages are.

    num_tokens: in the cache, of all sequences together. The places of `page_table` behind a
    sequence's pages hold pages of others, and the slots behind its last token hold other numbers.
    """
    num_pages = (num_tokens + batch * (page_size - 1)) // page_size
    longest = min(num_tokens, 2 * -(-num_tokens // batch))
    lengths = _lengths(batch, num_tokens)
    page_table = _page_table(lengths, num_pages, -(-longest // page_size), page_size)
    width = latent_dim + rope_dim
    return {
        "query": torch.randn(batch, num_heads, width) * (SPREAD / (scale * math.sqrt(width))),
        "cache": torch.randn(num_pages, page_size, width) + 0.2,
        "page_table": page_table.to(torch.int32),
        "lengths": lengths.to(torch.int32),
        "latent_dim": latent_dim,
        "scale": scale,
        "max_pages": page_table.shape[1],
    }


def make_hard_inputs(  # noqa: PLR0913, PLR0917  the parameters of a workload
    batch: int,
    num_tokens: int,
    num_heads: int,
    latent_dim: int,
    rope_dim: int,
    page_size: int,
    scale: float,
) -> dict[str, Tensor | int | float]:
    """The same, but `HARD` of the queries have a `PEAK`."""
    inputs = make_inputs(batch, num_tokens, num_heads, latent_dim, rope_dim, page_size, scale)
    lengths, page_table = inputs["lengths"].long(), inputs["page_table"].long()
    query, count = inputs["query"], batch * num_heads
    number = torch.randperm(count).view(batch, num_heads, 1)
    hard = number < count * HARD
    for chosen, token in ((number % 2 == 0, lengths - 1), (number % 2 == 1, lengths * 0)):
        page = page_table.gather(1, token[:, None] // page_size)[:, 0]
        own = inputs["cache"][page, token % page_size][:, None]
        peaks = own * (PEAK / (scale * own.square().sum(-1, keepdim=True)))
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
    query: Tensor,
    cache: Tensor,
    page_table: Tensor,
    lengths: Tensor,
    latent_dim: int,
    scale: float,
) -> Tensor:
    """Return softmax(scale query tokens^T) latents (batch, num_heads, latent_dim)."""
    wide = torch.promote_types(query.dtype, torch.float32)
    tokens = _tokens(cache, page_table).to(wide)
    weights = torch.softmax(_scores(query.to(wide), tokens, lengths, scale), -1)
    return weights @ tokens[..., :latent_dim]


def _tokens(cache: Tensor, page_table: Tensor) -> Tensor:
    """What the pages of each sequence hold (batch, places, width)."""
    return cache[page_table.long()].flatten(1, 2)


def _scores(query: Tensor, tokens: Tensor, lengths: Tensor, scale: float) -> Tensor:
    scores = query @ tokens.mT * scale
    return scores.masked_fill(~_held(tokens.shape[1], lengths)[:, None], -math.inf)


def _held(count: int, lengths: Tensor) -> Tensor:
    """Which of the places (batch, count) hold a token of the sequence."""
    return torch.arange(count, device=lengths.device) < lengths[:, None]


def baseline_fn(
    query: Tensor,
    cache: Tensor,
    page_table: Tensor,
    lengths: Tensor,
    latent_dim: int,
    scale: float,
) -> Tensor:
    """Pages gathered, and torch's own attention over them in the narrow dtype."""
    tokens = _tokens(cache, page_table)[:, None]
    held = _held(tokens.shape[2], lengths)[:, None, None]
    values = tokens[..., :latent_dim]
    # One head of keys for all heads of queries: these are so many queries of one head.
    found = F.scaled_dot_product_attention(query[:, None], tokens, values, held, scale=scale)
    return found.squeeze(1)


def forward_scale(  # noqa: PLR0913, PLR0917  the task's arguments
    query: Tensor,
    cache: Tensor,
    page_table: Tensor,
    lengths: Tensor,
    latent_dim: int,
    scale: float,
    inner_eps: float,
) -> Tensor:
    """Error scale: the result, its terms, and the weights' errors in float32 arithmetic."""
    tokens = _tokens(cache, page_table)
    values = tokens[..., :latent_dim]
    scores = _scores(query, tokens, lengths, scale)
    weights = torch.softmax(scores, -1)
    result = weights @ values
    products = torch.sqrt(query.square() @ tokens.square().mT) * abs(scale)
    unsure = 1 + products + scores.abs() + (scores.amax(-1, keepdim=True) - scores)
    moved = torch.where(scores.isfinite(), weights * unsure + UNDERFLOW, 0.0).square()
    # moved @ (values - result)^2: an error of all scores alike changes nothing.
    inner = moved @ values.square() - 2 * result * (moved @ values)
    inner = inner + result.square() * moved.sum(-1, keepdim=True)
    terms = result.square() + weights.square() @ values.square()
    return terms.sqrt() + inner_eps * inner.clamp(min=0).sqrt()
