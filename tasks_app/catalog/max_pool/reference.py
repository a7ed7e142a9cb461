"""Reference of `max_pool`: the maximum over windows of 2 x 2 with a stride of 2."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TIES = 0.05
"""Share of the elements that equal their right neighbour."""


def make_inputs(batch_size: int, in_channels: int, height: int, width: int) -> dict[str, Tensor]:
    """A feature map (batch_size, in_channels, height, width) with some ties inside windows."""
    x = torch.randn(batch_size, in_channels, height, width) - 0.5
    return {"x": torch.where(torch.rand_like(x) < TIES, x.roll(-1, 3), x)}


def forward_fn(x: Tensor) -> Tensor:
    """Return the pooled map (batch_size, in_channels, height // 2, width // 2)."""
    return F.max_pool2d(x, kernel_size=2)


def backward_fn(x: Tensor, grad_output: Tensor) -> tuple[Tensor]:
    """Return the gradient of x: grad_output at the first maximum of each window in row order."""
    _, indices = F.max_pool2d(x, kernel_size=2, return_indices=True)
    grad: Tensor = torch.ops.aten.max_pool2d_with_indices_backward(
        grad_output, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
    )
    return (grad,)
