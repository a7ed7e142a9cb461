"""Reference of `attention`: causal attention, in which groups of heads share keys and values."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

VARIED = ("key", "value")
"""Not the queries: with both a thousand times as large, float32 knows no score to a digit."""

UNDERFLOW = 2.0**-92
"""exp(-80) over the epsilon of float32: kernels keep exponents above that, or flush to zero."""

HARD = 1 / 8
"""Share of the queries that are hard, at random: the others look like those that are timed."""

SPREAD = 2.0
"""Standard deviation of the scores: a few keys count for each query, and the others a little."""

PEAK = 120.0
"""Score of the first key, or of the query's own, for the hard queries.

exp overflows there in float32 unless the maximum over all visible keys is subtracted first.
"""


def make_inputs(
    batch_size: int, num_heads: int, num_kv_heads: int, num_tokens: int, head_dim: int
) -> dict[str, Tensor]:
    """Queries (batch_size, num_heads, num_tokens, head_dim), keys and values of num_kv_heads."""
    query = torch.randn(batch_size, num_heads, num_tokens, head_dim) * SPREAD
    key = torch.randn(batch_size, num_kv_heads, num_tokens, head_dim)
    value = torch.randn(batch_size, num_kv_heads, num_tokens, head_dim) + 0.2
    return {"query": query, "key": key, "value": value}


def make_hard_inputs(
    batch_size: int, num_heads: int, num_kv_heads: int, num_tokens: int, head_dim: int
) -> dict[str, Tensor]:
    """The same, but `HARD` of the queries have a `PEAK`."""
    inputs = make_inputs(batch_size, num_heads, num_kv_heads, num_tokens, head_dim)
    query, key = inputs["query"], inputs["key"]
    peaks = key * (PEAK * math.sqrt(head_dim) / key.square().sum(-1, keepdim=True))
    peaks = peaks.repeat_interleave(num_heads // num_kv_heads, dim=1)
    chance = torch.rand(batch_size, num_heads, num_tokens, 1)
    hard = torch.where(chance < HARD / 2, peaks[:, :, :1], peaks)
    return inputs | {"query": torch.where(chance < HARD, hard, query)}


def forward_fn(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return softmax(query key^T / sqrt(head_dim), over keys up to the query) value."""
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)


def library_cudnn(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Fused attention of cuDNN."""
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return forward_fn(query, key, value)


def library_flash(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """FlashAttention in PyTorch."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return forward_fn(query, key, value)


def backward_fn(
    grad_output: Tensor, query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradients of query, key and value."""
    with torch.enable_grad():
        inputs = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
        return torch.autograd.grad(forward_fn(*inputs), inputs, grad_output)


def forward_scale(query: Tensor, key: Tensor, value: Tensor, inner_eps: float) -> Tensor:
    """Error scale: the result, its terms, and the weights' errors in float32 arithmetic."""
    scale = torch.empty_like(query)
    for head, own in _heads(query, key):
        v = value[own]
        weights, unsure = _weights(query[head], key[own])
        result = weights @ v
        moved = unsure.square()
        # unsure^2 @ (v - result)^2: an error of all scores alike changes nothing.
        inner = moved @ v.square() - 2 * result * (moved @ v)
        inner = inner + result.square() * moved.sum(-1, keepdim=True)
        terms = result.square() + weights.square() @ v.square()
        scale[head] = terms.sqrt() + inner_eps * inner.clamp(min=0).sqrt()
    return scale


def backward_scale(
    grad_output: Tensor, query: Tensor, key: Tensor, value: Tensor, inner_eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales: the gradients, their terms, and errors of what float32 arithmetic has before.

    Kernels may round weights, gradients of scores, the forward result and a group's sums to the
    dtype.
    """
    outer = [torch.zeros_like(tensor) for tensor in (query, key, value)]
    inner = [torch.zeros_like(tensor) for tensor in (query, key, value)]
    running = [torch.zeros_like(tensor) for tensor in (query, key, value)]
    for head, own in _heads(query, key):
        found = _head_scales(grad_output[head], query[head], key[own], value[own])
        for index, (where, (grad, terms, errors)) in enumerate(
            zip((head, own, own), found, strict=True)
        ):
            running[index][where] += grad
            outer[index][where] += running[index][where].square() + terms
            inner[index][where] += errors
    q, k, v = (a.sqrt() + inner_eps * b.sqrt() for a, b in zip(outer, inner, strict=True))
    return q, k, v


def _head_scales(g: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[tuple[Tensor, ...], ...]:
    """Of q, k and v of one head: the gradient, squares of its terms, and of their errors."""
    weights, unsure = _weights(q, k)
    grad_weights = g @ v.t()
    projection = (weights * grad_weights).sum(-1, keepdim=True)
    centred = grad_weights - projection
    root = math.sqrt(q.shape[1])
    scores = weights * centred / root  # gradients of the scores, times the factor of q and k
    # Their squared errors: of each, and those that a row has in common.
    moved, seen = unsure.square(), weights.square()
    sums = g.square() @ v.square().t() + grad_weights.square()
    each = moved * centred.square() + seen * (sums + projection.square())
    common = (moved * centred.square() + seen * sums).sum(-1, keepdim=True)
    stretch = moved.sum(-1, keepdim=True)  # of the row's weights, by an error of their sum
    rounded = (g * (weights @ v)).square().sum(-1, keepdim=True)  # of the forward result
    rounded, common, each = rounded / root**2, common / root**2, each / root**2
    squares, turned = scores.square(), (weights @ k).square()
    return (
        (
            scores @ k,
            squares @ k.square() + rounded * turned,
            each @ k.square() + common * turned + stretch * (squares @ k.square()),
        ),
        (
            scores.t() @ q,
            (squares + seen * rounded).t() @ q.square(),
            (each + seen * common + squares * stretch).t() @ q.square(),
        ),
        (weights.t() @ g, seen.t() @ g.square(), (moved + seen * stretch).t() @ g.square()),
    )


def _heads(query: Tensor, key: Tensor) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Places (batch, head) of each head's queries, and of its keys and values."""
    group = query.shape[1] // key.shape[1]
    for batch in range(query.shape[0]):
        for head in range(query.shape[1]):
            yield (batch, head), (batch, head // group)


def _weights(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """One head's weights (queries, keys), and their errors in units of epsilon.

    These follow from errors of the scores, of their distances from the largest, and of exp.
    """
    hidden = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool).triu(1)
    scores = (q @ k.t() / math.sqrt(q.shape[1])).masked_fill(hidden, -math.inf)
    weights = torch.softmax(scores, -1)
    products = torch.sqrt(q.square() @ k.square().t() / q.shape[1])
    unsure = 1 + products + scores.abs() + (scores.amax(-1, keepdim=True) - scores)
    return weights, (weights * unsure + UNDERFLOW).masked_fill(hidden, 0.0)
