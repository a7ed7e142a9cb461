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


def forward_scale(input: Tensor, kernel: Tensor, inner_eps: float) -> Tensor:
    """Error scale, of the output's shape: size and root of the summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they. Eight
    times the largest product stands for algorithms by transforms: they add elements before they
    multiply, and their errors are those of a whole tile. Beside BF16 results those are float32's.
    """
    size = forward_fn(input, kernel).abs()
    tile = 8 * input.abs().amax() * kernel.abs().amax()
    if inner_eps != 1:
        tile *= inner_eps * (4 + kernel.numel() ** 0.5)
    return size + torch.sqrt(forward_fn(input.square(), kernel.square())) + tile
