"""Reference of `add_rms_norm_fp8`: a residual sum, normalised and quantised token by token."""

from __future__ import annotations

import torch
from torch import Tensor

VARIED = ("x", "residual")

LARGEST = 448.0
"""The largest number of e4m3."""

LEAST_SCALE = 1 / (LARGEST * 512)
"""Scales are that large at least, so that a token of zeros has one."""

TAIL = 3
"""Features at the end that are larger than the rest, as activations have them."""

FAINT_EVERY = 4
"""One token in so many is faint: the mean square of its features is near epsilon."""


def make_inputs(
    num_tokens: int, hidden_size: int, epsilon: float = 1e-5
) -> dict[str, Tensor | float]:
    """A layer's output and the residual stream (num_tokens, hidden_size), and weights."""
    sizes = torch.ones(num_tokens, hidden_size)
    sizes[:, -TAIL:] = 8.0
    faint = torch.arange(num_tokens) % FAINT_EVERY == 1
    sizes = sizes * torch.where(faint, epsilon**0.5, 1.0)[:, None]
    return {
        "x": torch.randn(num_tokens, hidden_size) * sizes,
        "residual": (torch.randn(num_tokens, hidden_size) + 0.2) * sizes,
        "weight": torch.randn(hidden_size) * 0.3 + 1,
        "epsilon": epsilon,
    }


def forward_fn(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x + residual, its norm over the scales, and the scales (num_tokens)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    total = x.to(wide) + residual.to(wide)
    normalised = _normalised(total, weight.to(wide), epsilon)
    scales = (normalised.abs().amax(-1) / LARGEST).clamp(min=LEAST_SCALE)
    return total, normalised / scales[:, None], scales


def _normalised(total: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return total * torch.rsqrt(total.square().mean(-1, keepdim=True) + epsilon) * weight


def verify_fn(
    inputs: dict[str, Tensor], outputs: dict[str, Tensor], eps: float
) -> dict[str, Tensor]:
    """How far the sum, the scales, and numbers times their scales are from the exact ones.

    Of what is rounded, half a step is no error. The sum is rounded once, to eight bits. What is
    normalised may be that rounded sum, and may be rounded before and after it is multiplied by the
    weight, so it may be off by two epsilon, and with it the scales.
    """
    total = inputs["x"] + inputs["residual"]
    normalised = _normalised(total, inputs["weight"], inputs["epsilon"])
    wanted = (normalised.abs().amax(-1) / LARGEST).clamp(min=LEAST_SCALE)
    scales = outputs["scales"]
    number_error = (outputs["out"] * scales[:, None] - normalised).abs()
    sane = torch.where((scales - wanted).abs() < wanted / 2, scales, wanted)[:, None]
    step = _step(normalised / sane, bits=4, least=-6) * sane
    sum_error = (outputs["residual"] - total).abs()
    return {
        "residual - (residual + x)": _off(
            sum_error - _step(total, bits=8, least=-126) / 2, eps / 64 * total
        ),
        "scales": _off((scales - wanted).abs(), 2 * eps * wanted),
        "out * scales": _off(number_error - step / 2, 2 * eps * normalised),
    }


def _off(error: Tensor, allowed: Tensor) -> Tensor:
    """Errors over what is allowed; none below 2^-120 counts."""
    return error.clamp(min=0) / (allowed.abs() + 2.0**-120)


def _step(numbers: Tensor, bits: int, least: int) -> Tensor:
    """Distance of neighbours among numbers of so many bits, which end at 2^least."""
    _, exponents = torch.frexp(numbers)  # of numbers from one half to one
    return torch.ldexp(torch.ones_like(numbers), exponents.clamp(min=least + 1) - bits)
