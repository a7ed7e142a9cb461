"""Reference of `top_p_sampling`: one token a row, drawn from the nucleus of its probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("logits",)

STEPS = 64
"""At most so many nuclei are tried, from the smallest that rounding can make to the largest."""


def make_inputs(
    batch: int, vocabulary: int, top_p: float, spread: float = 3.0
) -> dict[str, Tensor]:
    """Logits (batch, vocabulary) of that standard deviation, and for each row a number below 1."""
    del top_p  # a parameter of the workload, which forward_fn gets
    return {
        "logits": torch.randn(batch, vocabulary) * spread,
        "uniform": torch.rand(batch),
    }


def forward_fn(logits: Tensor, uniform: Tensor, top_p: float) -> Tensor:
    """Return the token (batch, int32) at which the nucleus has `uniform` of its mass behind it.

    A token is in the nucleus if those with larger logits have less than `top_p` of the mass.
    """
    masses = torch.softmax(logits, -1)
    ordered, order = torch.sort(logits, dim=-1, descending=True, stable=True)
    larger = torch.searchsorted(-ordered, -logits, side="left")
    sums = torch.cumsum(masses.gather(-1, order), -1)
    before = torch.nn.functional.pad(sums, (1, 0)).gather(-1, larger)
    nucleus = torch.where((before < top_p) | (larger == 0), masses, 0.0)
    reached = torch.cumsum(nucleus, -1)
    token = torch.searchsorted(reached, uniform[:, None] * reached[:, -1:], side="right")
    last = (nucleus > 0).to(torch.int32).cumsum(-1).argmax(-1, keepdim=True)
    return torch.minimum(token, last).squeeze(-1).to(torch.int32)


def verify_fn(
    inputs: dict[str, Tensor], outputs: dict[str, Tensor], eps: float
) -> dict[str, Tensor]:
    """How far `uniform` lies from the token's own part of the nucleus, and whether it is a token.

    Sums in float32 move both ends of the nucleus and of every part of it. Rounding may add tokens
    to the nucleus, or leave some out, whose mass is less than what is allowed. It may add those
    whose logits are nearly that of the last one. Each nucleus between the two is tried.
    """
    logits, uniform, token = inputs["logits"], inputs["uniform"], outputs["tokens"].long()
    size = logits.shape[-1]
    allowed = eps * (16 + size**0.5)
    inside = (token >= 0) & (token < size)
    ordered, order = torch.sort(logits, dim=-1, descending=True, stable=True)
    masses = torch.softmax(ordered, -1)
    before = torch.nn.functional.pad(torch.cumsum(masses, -1), (1, 0))
    near = 4 * eps * (1 + ordered.abs().amax(-1, keepdim=True))
    fewest = _count(ordered, before, inputs["top_p"] - allowed, torch.zeros_like(near))
    most = _count(ordered, before, inputs["top_p"] + allowed, near)
    ranks = torch.empty_like(order).scatter_(-1, order, torch.arange(size).expand_as(order))
    plain = torch.softmax(logits, -1)
    chosen = token.clamp(0, size - 1)[:, None]
    best = torch.full(uniform.shape, torch.inf)
    for step in range(STEPS):
        count = torch.minimum(fewest + step, most)
        reached = torch.cumsum(torch.where(ranks < count, plain, 0.0), -1)
        total = reached[:, -1]
        end = reached.gather(-1, chosen).squeeze(-1) / total
        begin = end - plain.gather(-1, chosen).squeeze(-1) / total
        off = torch.maximum(begin - uniform, uniform - end).clamp(min=0) / allowed
        held = (ranks.gather(-1, chosen) < count).squeeze(-1) & inside
        best = torch.minimum(best, torch.where(held, off, torch.inf))
        if bool((fewest + step >= most).all()):
            break
    return {"distance from the token's part of the nucleus": best}


def _count(ordered: Tensor, before: Tensor, top_p: float, near: Tensor) -> Tensor:
    """Tokens in the nucleus (batch, 1), if logits that are nearer than `near` are equal."""
    larger = torch.searchsorted(-ordered, -ordered - near, side="left")
    larger = larger.clamp(max=ordered.shape[-1])
    kept = before.gather(-1, larger) < top_p
    return kept.to(torch.int64).sum(-1, keepdim=True).clamp(min=1)
