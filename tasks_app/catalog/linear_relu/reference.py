"""Reference of `linear_relu`: a fully connected layer with a rectifier."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = torch.finfo(torch.float32).eps
LOOSEST = 16.0
"""The tolerance's constant: the least number of EPS by which a bound exceeds its scale."""


def make_inputs(
    batch_size: int, num_input_features: int, num_output_features: int
) -> dict[str, Tensor]:
    """Activations (batch_size, num_input_features), weights (outputs, inputs) and biases."""
    weights = torch.rand(num_output_features, num_input_features) * 2 - 1
    return {
        "x": torch.randn(batch_size, num_input_features) + 0.2,
        "weights": weights.mul_((3 / num_input_features) ** 0.5),
        "biases": torch.randn(num_output_features) * 0.5 + 0.1,
    }


def forward_fn(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Return max(x @ weights^T + biases, 0) (batch_size, num_output_features)."""
    return F.relu(F.linear(x, weights, biases))


def forward_scale(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Error scale: the result, its root mean square, and what is lost in whole blocks."""
    return _usual(forward_fn(x, weights, biases)) + _blocks(x, weights)


def backward_fn(
    grad_output: Tensor, x: Tensor, weights: Tensor, biases: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weights and biases; that of the rectifier at 0 is 0."""
    grad = grad_output * (F.linear(x, weights, biases) > 0)
    return grad @ weights, grad.t() @ x, grad.sum(0)


def backward_scale(
    grad_output: Tensor, x: Tensor, weights: Tensor, biases: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales, wide enough where rounding decides on which side of 0 a sum falls.

    Such a sum may switch its gradient on or off in a correct kernel: the elements that it
    contributes to may be off by that contribution.
    """
    sums = F.linear(x, weights, biases)
    rounding = EPS * (LOOSEST + 2 * x.shape[1] ** 0.5)
    doubtful = sums.abs() <= rounding * sums.square().mean().sqrt()
    slack = grad_output.abs() * doubtful / (EPS * LOOSEST)
    extra = (slack @ weights.abs(), slack.t() @ x.abs(), slack.sum(0))
    grads = backward_fn(grad_output, x, weights, biases)
    return (
        _usual(grads[0]) + _blocks(grad_output, weights) + extra[0],
        _usual(grads[1]) + _blocks(grad_output, x) + extra[1],
        _usual(grads[2]) + extra[2],
    )


def _usual(result: Tensor) -> Tensor:
    return result.abs() + result.square().mean().sqrt()


def _blocks(first: Tensor, second: Tensor) -> Tensor:
    """The largest product of sums of two elements, as Strassen's algorithm makes them."""
    return 4 * first.abs().amax() * second.abs().amax()
