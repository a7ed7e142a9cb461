"""Reference of `triangle_multiplicative_update`: edges of all triangles over outgoing edges."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

VARIED = ("pairs",)

EPSILON = 1e-5
"""What both normalisations add to a variance."""

FAINT_EVERY = 8
"""One pair in so many is faint: the variance of its channels is near `EPSILON`."""

GAIN = 0.1
"""Size of the projections: the triangles' sums of few tokens have a variance near `EPSILON`."""


def make_inputs(num_tokens: int, channels: int, hidden: int) -> dict[str, Tensor]:
    """Pairs (num_tokens, num_tokens, channels), and the layer's weights.

    `in_weights` (4, hidden, channels) has the gate and the projection of the first edges, and then
    those of the second ones.
    """
    places = torch.arange(num_tokens)
    faint = (3 * places[:, None] + places) % FAINT_EVERY == 5
    pairs = torch.randn(num_tokens, num_tokens, channels) + 0.2
    sizes = torch.tensor((1.0, GAIN, 1.0, GAIN)).view(4, 1, 1)
    return {
        "pairs": pairs * torch.where(faint, EPSILON**0.5, 1.0)[..., None],
        "norm_weight": torch.randn(channels) * 0.2 + 1,
        "norm_bias": torch.randn(channels) * 0.2,
        "in_weights": torch.randn(4, hidden, channels) * (sizes / channels**0.5),
        "out_norm_weight": torch.randn(hidden) * 0.2 + 1,
        "out_norm_bias": torch.randn(hidden) * 0.2,
        "out_weight": torch.randn(channels, hidden) / hidden**0.5,
        "gate_weight": torch.randn(channels, channels) / channels**0.5,
    }


def forward_fn(  # noqa: PLR0913, PLR0917  the task's arguments
    pairs: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    in_weights: Tensor,
    out_norm_weight: Tensor,
    out_norm_bias: Tensor,
    out_weight: Tensor,
    gate_weight: Tensor,
) -> Tensor:
    """Return the update of the pairs (num_tokens, num_tokens, channels)."""
    return _update(
        torch.promote_types(pairs.dtype, torch.float32),
        pairs,
        (norm_weight, norm_bias, in_weights),
        (out_norm_weight, out_norm_bias, out_weight, gate_weight),
    )


def baseline_fn(  # noqa: PLR0913, PLR0917  the task's arguments
    pairs: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    in_weights: Tensor,
    out_norm_weight: Tensor,
    out_norm_bias: Tensor,
    out_weight: Tensor,
    gate_weight: Tensor,
) -> Tensor:
    """The same operation by operation in the narrow dtype, as a model runs it."""
    return _update(
        pairs.dtype,
        pairs,
        (norm_weight, norm_bias, in_weights),
        (out_norm_weight, out_norm_bias, out_weight, gate_weight),
    )


def _update(
    dtype: torch.dtype, pairs: Tensor, before: tuple[Tensor, ...], after: tuple[Tensor, ...]
) -> Tensor:
    """The update, of which every step has that dtype."""
    norm_weight, norm_bias, in_weights = (each.to(dtype) for each in before)
    out_norm_weight, out_norm_bias, out_weight, gate_weight = (each.to(dtype) for each in after)
    x = F.layer_norm(pairs.to(dtype), norm_weight.shape, norm_weight, norm_bias, EPSILON)
    gates, firsts, other_gates, seconds = (x @ in_weights.flatten(0, 1).mT).chunk(4, -1)
    first = torch.sigmoid(gates) * firsts
    second = torch.sigmoid(other_gates) * seconds
    sums = (first.permute(2, 0, 1) @ second.permute(2, 1, 0)).permute(1, 2, 0)
    normalised = F.layer_norm(sums, out_norm_weight.shape, out_norm_weight, out_norm_bias, EPSILON)
    return torch.sigmoid(x @ gate_weight.mT) * (normalised @ out_weight.mT)


def forward_scale(  # noqa: PLR0913, PLR0917  the task's arguments
    pairs: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
    in_weights: Tensor,
    out_norm_weight: Tensor,
    out_norm_bias: Tensor,
    out_weight: Tensor,
    gate_weight: Tensor,
) -> Tensor:
    """Error scale: what is left of errors of one epsilon in the result of every step.

    Squares of errors are followed through the steps, as those of independent errors add up.
    """
    x, x_errors = _normalised(pairs, torch.zeros_like(pairs), norm_weight, norm_bias)
    edges = []
    for gate, projection in (in_weights[:2], in_weights[2:]):
        edges.append(_gated(_linear(x, x_errors, gate), _linear(x, x_errors, projection)))
    (first, first_errors), (second, second_errors) = (
        tuple(each.permute(2, 0, 1) for each in edge) for edge in edges
    )
    sums = first @ second.mT
    errors = first_errors @ second.square().mT + first.square() @ second_errors.mT
    sums, errors = (each.permute(1, 2, 0) for each in (sums, errors + sums.square()))
    y, y_errors = _normalised(sums, errors, out_norm_weight, out_norm_bias)
    _, found = _gated(_linear(x, x_errors, gate_weight), _linear(y, y_errors, out_weight))
    return found.sqrt()


Known = tuple[Tensor, Tensor]
"""Values, and the squares of their errors in units of epsilon."""


def _normalised(value: Tensor, errors: Tensor, weight: Tensor, bias: Tensor) -> Known:
    variance, mean = torch.var_mean(value, -1, correction=0, keepdim=True)
    n = (value - mean) / torch.sqrt(variance + EPSILON)
    moved = errors / (variance + EPSILON)
    common = moved.mean(-1, keepdim=True) + n.square() * (n.square() * moved).mean(-1, keepdim=True)
    moved = moved + common / value.shape[-1] + n.square()
    result = n * weight + bias
    return result, moved * weight.square() + result.square()


def _linear(value: Tensor, errors: Tensor, weight: Tensor) -> Known:
    result = value @ weight.mT
    return result, errors @ weight.square().mT + result.square()


def _gated(gate: Known, value: Known) -> Known:
    """A value times the sigmoid of its gate."""
    share = torch.sigmoid(gate[0])
    of_share = share.square() + (share * (1 - share)).square() * gate[1]
    result = share * value[0]
    errors = result.square() + share.square() * value[1] + value[0].square() * of_share
    return result, errors
