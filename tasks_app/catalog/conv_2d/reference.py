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


PHASES = 4
"""Rows, and columns, of which the baseline makes channels: libraries are slow with only one."""


def baseline_fn(input: Tensor, kernel: Tensor) -> Tensor:
    """The same as one of `PHASES`^2 channels in and out, shuffled back into rows and columns.

    On a GPU the library takes BF16 as it is, and sums in float32.
    """
    wide = input.dtype if input.is_cuda else torch.promote_types(input.dtype, torch.float32)
    rows, cols = (size - taps + 1 for size, taps in zip(input.shape, kernel.shape, strict=True))
    weights = _phased(kernel.to(wide))
    missing = [
        _multiple(size) + PHASES * (taps - 1) - held
        for size, taps, held in zip((rows, cols), weights.shape[2:], input.shape, strict=True)
    ]
    image = functional.pad(input.to(wide), (0, missing[1], 0, missing[0]))
    channels = functional.conv2d(functional.pixel_unshuffle(image[None, None], PHASES), weights)
    return functional.pixel_shuffle(channels, PHASES)[0, 0, :rows, :cols]


def _phased(kernel: Tensor) -> Tensor:
    """Weights (phases out, phases in, ...): the kernel as each phase of the output meets it."""
    taps = [_multiple(size + PHASES - 1) for size in kernel.shape]
    behind = [most - size for most, size in zip(taps, kernel.shape, strict=True)]
    padded = functional.pad(kernel, (PHASES - 1, behind[1], PHASES - 1, behind[0]))
    shifted = padded.unfold(0, taps[0], 1).unfold(1, taps[1], 1).flip(0, 1).flatten(0, 1)
    return functional.pixel_unshuffle(shifted[:, None], PHASES)


def _multiple(size: int) -> int:
    """The least multiple of `PHASES` from `size` on."""
    return -(-size // PHASES) * PHASES


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
