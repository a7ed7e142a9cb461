"""Reference of `linear`: a fully connected layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


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
    """Return x @ weights^T + biases (batch_size, num_output_features)."""
    return F.linear(x, weights, biases)


def forward_scale(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Error scale: the result, its root mean square, and what is lost in whole blocks."""
    return _usual(forward_fn(x, weights, biases)) + _blocks(x, weights)


def backward_fn(grad_output: Tensor, x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weights and biases."""
    return grad_output @ weights, grad_output.t() @ x, grad_output.sum(0)


def backward_scale(
    grad_output: Tensor, x: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales: the same of each gradient; that of the biases is a sum."""
    grads = backward_fn(grad_output, x, weights)
    return (
        _usual(grads[0]) + _blocks(grad_output, weights),
        _usual(grads[1]) + _blocks(grad_output, x),
        _usual(grads[2]),
    )


def _usual(result: Tensor) -> Tensor:
    return result.abs() + result.square().mean().sqrt()


def _blocks(first: Tensor, second: Tensor) -> Tensor:
    """The largest product of sums of two elements, as Strassen's algorithm makes them."""
    return 4 * first.abs().amax() * second.abs().amax()
