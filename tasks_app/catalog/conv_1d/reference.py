"""Reference of `conv_1d`: a vector under a sliding kernel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def make_inputs(input_size: int, kernel_size: int) -> dict[str, Tensor]:
    """Input (input_size) and kernel (kernel_size), float32, uniform in [-1, 1)."""
    return {"input": torch.rand(input_size) * 2 - 1, "kernel": torch.rand(kernel_size) * 2 - 1}


def forward_fn(input: Tensor, kernel: Tensor) -> Tensor:
    """Return the correlation of the two where all of the kernel lies on the input.

    Shape (input_size - kernel_size + 1).
    """
    wide = torch.promote_types(input.dtype, torch.float32)
    return functional.conv1d(input.to(wide)[None, None], kernel.to(wide)[None, None])[0, 0]


def forward_scale(input: Tensor, kernel: Tensor) -> Tensor:
    """Error scale, of the output's shape: size and root of the summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    size = forward_fn(input, kernel).abs()
    return size + torch.sqrt(forward_fn(input.square(), kernel.square()))
