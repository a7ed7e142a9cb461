"""Reference of `conv_relu_pool`: convolution, rectifier and 2 x 2 max pooling."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = torch.finfo(torch.float32).eps
LOOSEST = 16.0
"""The tolerance's constant: the least number of EPS by which a bound exceeds its scale."""


TRANSFORMED = 8.0
"""How much further the weights' gradient may be off: cuDNN computes it by transforms of tiles.

On an H200 that took 3.7 times what plain sums are allowed.
"""


def make_inputs(
    batch_size: int, in_channels: int, height: int, width: int, out_channels: int, kernel_size: int
) -> dict[str, Tensor]:
    """A feature map (batch_size, in_channels, height, width), weights and biases."""
    fan_in = in_channels * kernel_size**2
    return {
        "x": torch.randn(batch_size, in_channels, height, width) + 0.2,
        "weights": torch.randn(out_channels, in_channels, kernel_size, kernel_size) / fan_in**0.5,
        "biases": torch.randn(out_channels) * 0.5 - 0.7,
    }


def forward_fn(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Return max_pool2d(relu(conv2d(x, weights) + biases), 2)."""
    return F.max_pool2d(F.relu(F.conv2d(x, weights, biases)), kernel_size=2)


def forward_scale(x: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Error scale: the result, its root mean square, and what is lost in whole tiles."""
    return _usual(forward_fn(x, weights, biases)) + _tile(x, weights)


def _usual(result: Tensor) -> Tensor:
    return result.abs() + result.square().mean().sqrt()


def _tile(first: Tensor, second: Tensor) -> Tensor:
    """The largest product of sums of two elements, as algorithms by transforms make them."""
    return 4 * first.abs().amax() * second.abs().amax()


def backward_fn(
    x: Tensor, weights: Tensor, biases: Tensor, grad_output: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weights and biases; that of the rectifier at 0 is 0."""
    sums = F.conv2d(x, weights, biases)
    rectified = F.relu(sums)
    _, indices = F.max_pool2d(rectified, kernel_size=2, return_indices=True)
    grad: Tensor = torch.ops.aten.max_pool2d_with_indices_backward(
        grad_output, rectified, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
    )
    return _convolution_backward(grad * (sums > 0), x, weights)


def _convolution_backward(
    grad: Tensor, x: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    result: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        grad,
        x,
        weights,
        [weights.shape[0]],
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        [True, True, True],
    )
    return result


def backward_scale(
    x: Tensor, weights: Tensor, biases: Tensor, grad_output: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Error scales, wide enough where rounding decides which sum of a window is the largest.

    In a correct kernel the gradient of such a window may go to another of its elements, or to
    none where the largest is near 0: what it contributes to may be off by its contribution.
    """
    sums = F.conv2d(x, weights, biases)
    slack = _doubtful(sums, weights[0].numel()) * _at_windows(grad_output.abs(), sums)
    extra = _convolution_backward(slack / (EPS * LOOSEST), x.abs(), weights.abs())
    grads = backward_fn(x, weights, biases, grad_output)
    return (
        _usual(grads[0]) + _tile(grad_output, weights) + extra[0],
        TRANSFORMED * _usual(grads[1]) + _tile(grad_output, x) + extra[1],
        _usual(grads[2]) + extra[2],
    )


def _doubtful(sums: Tensor, length: int) -> Tensor:
    """1 at the elements that rounding may make, or keep from being, their window's choice.

    These are the ones within rounding of the window's maximum (0 included), in windows where
    the maximum has such a rival.
    """
    rounding = EPS * (LOOSEST + length**0.5) * sums.square().mean().sqrt()
    rectified = F.relu(sums)
    top = _at_windows(F.max_pool2d(rectified, kernel_size=2), sums)
    near = (sums >= top - rounding) & (sums > -rounding) & (top > -1)
    rivals = F.avg_pool2d(near.to(sums.dtype), kernel_size=2) * 4 > 1.5
    contested = _at_windows(rivals.to(sums.dtype), sums) > 0
    return (near & (contested | (top <= rounding))).to(sums.dtype)


def _at_windows(pooled: Tensor, sums: Tensor) -> Tensor:
    """Each window's value at its four elements; -1 or nothing where no window reaches."""
    full = F.interpolate(pooled, scale_factor=2, mode="nearest")
    missing = (sums.shape[-1] - full.shape[-1], sums.shape[-2] - full.shape[-2])
    return F.pad(full, (0, missing[0], 0, missing[1]), value=-1.0)
