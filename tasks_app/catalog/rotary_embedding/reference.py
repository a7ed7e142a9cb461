"""Reference of `rotary_embedding`: halves of each head rotated by its token's position."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("x",)

BASES = (4.0, 6.0)
"""Decimal exponents of the smallest and the largest base, of which each draw has its own.

A kernel that computes angles itself, from a base that it knows, is wrong.
"""


def make_inputs(
    batch_size: int,
    num_tokens: int,
    num_heads: int,
    head_dim: int,
    rotary_dim: int,
    max_positions: int,
) -> dict[str, Tensor]:
    """Heads (batch_size, num_tokens, num_heads, head_dim), tables and int64 positions.

    Each sequence holds two texts: the first is continued from some position on, and at some token
    the second one begins with position 0.
    """
    low, high = BASES
    base = 10 ** (torch.rand(()) * (high - low) + low)
    frequencies = base ** (torch.arange(rotary_dim // 2) * (-2 / rotary_dim))
    angles = torch.arange(max_positions)[:, None] * frequencies
    tokens = torch.arange(num_tokens)
    start = torch.randint(0, max_positions - num_tokens + 1, (batch_size, 1))
    begin = torch.randint(1, num_tokens + 1, (batch_size, 1))
    return {
        "x": torch.randn(batch_size, num_tokens, num_heads, head_dim) + 0.2,
        "cosines": angles.cos(),
        "sines": angles.sin(),
        "positions": torch.where(tokens < begin, start + tokens, tokens - begin),
    }


def forward_fn(x: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor) -> Tensor:
    """Return x with elements i and i + rotary_dim / 2 of each head rotated, others as they are."""
    wide = torch.promote_types(x.dtype, torch.float32)
    cosine, sine = _of_tokens(cosines, positions, wide), _of_tokens(sines, positions, wide)
    return _rotated(x, cosine, sine)


def backward_fn(
    grad_output: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor
) -> tuple[Tensor]:
    """Return the gradient of x: grad_output rotated the other way round."""
    wide = torch.promote_types(grad_output.dtype, torch.float32)
    cosine, sine = _of_tokens(cosines, positions, wide), _of_tokens(sines, positions, wide)
    return (_rotated(grad_output, cosine, -sine),)


def _of_tokens(table: Tensor, positions: Tensor, wide: torch.dtype) -> Tensor:
    """Rows of a table for each token (batch, tokens, 1, rotary_dim / 2)."""
    return table[positions].to(wide)[:, :, None]


def _rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    half = cosine.shape[-1]
    first, second = x[..., :half].to(cosine.dtype), x[..., half : 2 * half].to(cosine.dtype)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat((*(part.to(x.dtype) for part in turned), x[..., 2 * half :]), -1)


def forward_scale(x: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor) -> Tensor:
    """Error scale: the sizes of the two products; nothing where x is copied."""
    wide = x.dtype
    cosine = _of_tokens(cosines, positions, wide).abs()
    sine = _of_tokens(sines, positions, wide).abs()
    half = cosine.shape[-1]
    first, second = x[..., :half].abs(), x[..., half : 2 * half].abs()
    sizes = (first * cosine + second * sine, second * cosine + first * sine)
    return torch.cat((*sizes, torch.zeros_like(x[..., 2 * half :])), -1)


def backward_scale(
    grad_output: Tensor, cosines: Tensor, sines: Tensor, positions: Tensor
) -> tuple[Tensor]:
    """The same: signs do not matter."""
    return (forward_scale(grad_output, cosines, sines, positions),)
