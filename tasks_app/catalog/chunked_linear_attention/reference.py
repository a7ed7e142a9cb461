"""Reference of `chunked_linear_attention`: a state that decays, and that each token adds to."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("query", "key", "value")

CHUNK = 64
"""Tokens that are related to each other at once; earlier ones are known by the state."""

SLOWEST = 1e-3
"""Mean decay of the slowest heads, as a part of that of the quickest, which is 1."""

RESET_EVERY, RESET = 37, -60.0
"""In hard inputs, one token in so many of every other head begins anew: exp(RESET) is left.

Which ones, is drawn for each head: were it known, no kernel would need a state.
"""


def make_inputs(
    batch: int, num_tokens: int, num_heads: int, key_dim: int, value_dim: int
) -> dict[str, Tensor]:
    """Queries, keys and values (batch, num_tokens, num_heads, ...), and logarithms of decays."""
    pace = SLOWEST ** torch.rand(batch, 1, num_heads)
    log_decay = -pace * (torch.rand(batch, num_tokens, num_heads) + 0.5)
    log_decay = log_decay.to(torch.bfloat16).to(pace.dtype)  # the baseline gets them so narrow
    return {
        "query": torch.randn(batch, num_tokens, num_heads, key_dim) / key_dim**0.5,
        "key": torch.randn(batch, num_tokens, num_heads, key_dim),
        "value": torch.randn(batch, num_tokens, num_heads, value_dim) + 0.2,
        "log_decay": log_decay,
    }


def make_hard_inputs(
    batch: int, num_tokens: int, num_heads: int, key_dim: int, value_dim: int
) -> dict[str, Tensor]:
    """The same, but in every other head some tokens begin anew."""
    inputs = make_inputs(batch, num_tokens, num_heads, key_dim, value_dim)
    resets = torch.rand(batch, num_tokens, num_heads) * RESET_EVERY < 1
    resets &= torch.rand(batch, 1, num_heads) < 1 / 2
    return inputs | {"log_decay": torch.where(resets, RESET, inputs["log_decay"])}


def forward_fn(query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    """Return query_t state_t, with state_t = exp(log_decay_t) state_(t-1) + key_t^T value_t."""
    return _chunked(query, key, value, log_decay, torch.promote_types(query.dtype, torch.float32))


def baseline_fn(query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    """The same with products of what is rounded to the narrow dtype; the state is float32."""
    return _chunked(query, key, value, log_decay, query.dtype).to(query.dtype)


def _chunked(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, operands: torch.dtype
) -> Tensor:
    """The result in float32 at least, from products of such operands."""
    q, k, v, g = _by_head(query, key, value, log_decay)
    state = torch.zeros(*q.shape[:2], q.shape[3], v.shape[3], dtype=q.dtype, device=q.device)
    found = []
    for begin in range(0, q.shape[2], CHUNK):
        queries, keys, values, logs = (x[:, :, begin : begin + CHUNK] for x in (q, k, v, g))
        since = logs.cumsum(2)
        scores = _product(queries, keys.mT, operands) * _decay(since)
        before = _product(queries, state, operands) * since.exp()[..., None]
        found.append(before + _product(scores, values, operands))
        rest = (since[:, :, -1:] - since).exp()[..., None]
        added = _product((keys * rest).mT, values, operands)
        state = state * since[:, :, -1].exp()[..., None, None] + added
    return torch.cat(found, 2).transpose(1, 2)


def _by_head(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors (batch, heads, tokens, ...) in float32 at least."""
    return tuple(
        tensor.transpose(1, 2).to(torch.promote_types(tensor.dtype, torch.float32))
        for tensor in tensors
    )


def _product(first: Tensor, second: Tensor, operands: torch.dtype) -> Tensor:
    return (first.to(operands) @ second.to(operands)).to(first.dtype)


def _decay(since: Tensor) -> Tensor:
    """What is left at each token of a chunk (..., tokens, tokens) of it and each one before."""
    count = since.shape[-1]
    later = torch.ones(count, count, dtype=torch.bool, device=since.device).triu(1)
    apart = since[..., :, None] - since[..., None, :]
    return apart.masked_fill(later, -torch.inf).exp()


def forward_scale(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, inner_eps: float
) -> Tensor:
    """Error scale: the result, and the root of its summed squared terms, rounded or not.

    Kernels round scores, decayed keys and the state to the narrow dtype. Sums of logarithms in
    float32 are off by a part of all that was summed.
    """
    q, k, v, g = _by_head(query, key, value, log_decay)
    state = torch.zeros(*q.shape[:2], q.shape[3], v.shape[3], dtype=q.dtype, device=q.device)
    squares, found = state.clone(), []
    for begin in range(0, q.shape[2], CHUNK):
        queries, keys, values, logs = (x[:, :, begin : begin + CHUNK] for x in (q, k, v, g))
        since = logs.cumsum(2)
        decay = _decay(since)
        left = since.exp()[..., None]
        scores = queries @ keys.mT * decay
        result = scores @ values + queries @ state * left
        near = scores.square() + queries.square() @ keys.square().mT * decay.square()
        far = queries.square() @ (state.square() + squares) * left.square()
        found.append(result.square() + near @ values.square() + far)
        rest = (since[:, :, -1:] - since).exp()[..., None]
        kept = since[:, :, -1].exp()[..., None, None]
        state = state * kept + (keys * rest).mT @ values
        squares = squares * kept.square() + (keys * rest).square().mT @ values.square()
    unsure = 1 + g.abs().cumsum(2)[..., None]
    scale = torch.cat(found, 2).sqrt() * (1 + inner_eps * unsure)
    return scale.transpose(1, 2)
