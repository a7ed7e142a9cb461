"""Reference of `conv_2d`: a matrix under a sliding kernel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def make_inputs(
    input_rows: int, input_cols: int, kernel_rows: int, kernel_cols: int
) -> dict[str, Tensor]:
    """Input (input_rows, input_cols) and kernel (kernel_rows, kernel_cols), uniform in [-1, 1)."""
    return {
        "input": torch.rand(input_rows, input_cols) * 2 - 1,
        "kernel": torch.rand(kernel_rows, kernel_cols) * 2 - 1,
    }


def forward_fn(input: Tensor, kernel: Tensor) -> Tensor:
    """Return the correlation of the two where all of the kernel lies on the input.

    Shape (input_rows - kernel_rows + 1, input_cols - kernel_cols + 1).
    """
    wide = torch.promote_types(input.dtype, torch.float32)
    return functional.conv2d(input.to(wide)[None, None], kernel.to(wide)[None, None])[0, 0]


def forward_scale(input: Tensor, kernel: Tensor) -> Tensor:
    """Error scale, of the output's shape: size and root of the summed squared products.

    Partial sums of random signs grow like the root; where the sum is larger, so were they.
    """
    size = forward_fn(input, kernel).abs()
    return size + torch.sqrt(forward_fn(input.square(), kernel.square()))
