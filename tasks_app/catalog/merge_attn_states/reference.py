"""Reference of `merge_attn_states`: attention over two parts of the keys, merged."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("V_a", "V_b")

FAR = 200.0
"""Largest LSE, about: exp(200) overflows float32. Hard tokens have such ones, up to +-FAR."""
HARD = 1 / 4
"""Share of the tokens that are hard, at random places."""
EMPTY = 1 / 6
"""Share of the states that are empty in hard inputs; of them one in four has the LSE +inf."""


def make_inputs(num_tokens: int, num_heads: int, head_size: int) -> dict[str, Tensor]:
    """Vectors (tokens, heads, size), uniform in [-1, 1), and their LSEs (heads, tokens).

    The LSEs are wider than the origin's [-1, 1), where the weights are all alike.
    """
    shape = (num_tokens, num_heads, head_size)
    return {
        "V_a": torch.rand(shape) * 2 - 1,
        "lse_a": torch.randn(num_heads, num_tokens) * 2,
        "V_b": torch.rand(shape) * 2 - 1,
        "lse_b": torch.randn(num_heads, num_tokens) * 2,
    }


def make_hard_inputs(num_tokens: int, num_heads: int, head_size: int) -> dict[str, Tensor]:
    """The same, but the LSEs of hard tokens are far from zero, and some states are empty."""
    inputs = make_inputs(num_tokens, num_heads, head_size)
    shift = torch.rand(num_tokens) * (2 * FAR) - FAR
    shift = torch.where(torch.rand(num_tokens) < HARD, shift, 0.0)
    return inputs | {name: _hard(inputs[name] + shift) for name in ("lse_a", "lse_b")}


def _hard(lse: Tensor) -> Tensor:
    chance = torch.rand(lse.shape)
    lse = lse.masked_fill(chance < EMPTY, -torch.inf)
    return lse.masked_fill(chance < EMPTY / 4, torch.inf)


def forward_fn(V_a: Tensor, lse_a: Tensor, V_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the merged vectors (tokens, heads, size) and LSEs (heads, tokens)."""
    wide = torch.promote_types(V_a.dtype, torch.float32)
    largest, powers = _powers(lse_a.to(wide), lse_b.to(wide))
    total = powers.sum(0)
    weights = powers / total.masked_fill(total == 0, 1.0)
    a, b = weights.transpose(1, 2)[..., None]
    return a * V_a.to(wide) + b * V_b.to(wide), largest + torch.log(total)


def _powers(lse_a: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """The larger LSE (heads, tokens), 0 where both are empty, and exp(lse - it) (2, ...)."""
    both = torch.stack((lse_a, lse_b))
    both = both.masked_fill(both.isinf(), -torch.inf)
    largest = both.amax(0)
    largest = largest.masked_fill(largest.isinf(), 0.0)
    return largest, torch.exp(both - largest)


def forward_scale(
    V_a: Tensor, lse_a: Tensor, V_b: Tensor, lse_b: Tensor, inner_eps: float
) -> tuple[Tensor, Tensor]:
    """Error scales: the terms' sizes, with the error of their exponents; those of the LSE's."""
    largest, powers = _powers(lse_a, lse_b)
    total = powers.sum(0)
    exponents = -torch.log(powers.clamp(min=1e-300))
    weights = powers * (1 + inner_eps * exponents) / total.masked_fill(total == 0, 1.0)
    a, b = weights.transpose(1, 2)[..., None]
    return a * V_a.abs() + b * V_b.abs(), largest.abs() + torch.log(
        total.clamp(min=1.0)
    ) + inner_eps
