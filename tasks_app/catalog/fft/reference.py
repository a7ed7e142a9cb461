"""Reference of `fft`: the discrete Fourier transform of a complex vector."""

from __future__ import annotations

import torch
from torch import Tensor

SHARE = 1 / 16
"""Share of the root of all summed squares in the error scale of an element."""


def make_inputs(N: int) -> dict[str, Tensor]:
    """Real and imaginary parts (N), float32, uniform in [-1, 1)."""
    return {"input_real": torch.rand(N) * 2 - 1, "input_img": torch.rand(N) * 2 - 1}


def forward_fn(input_real: Tensor, input_img: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real and the imaginary part of the transform (N), not normalised."""
    wide = torch.promote_types(input_real.dtype, torch.float32)
    found = torch.fft.fft(torch.complex(input_real.to(wide), input_img.to(wide)))
    return found.real.contiguous(), found.imag.contiguous()


def forward_scale(input_real: Tensor, input_img: Tensor) -> tuple[Tensor, Tensor]:
    """Error scale (N) of both parts: their size, and a share of the norm of the whole input.

    Each stage rounds numbers whose mean square is that of the result, which is the input's norm.
    """
    norm = torch.sqrt(input_real.square().sum() + input_img.square().sum())
    real, imaginary = forward_fn(input_real, input_img)
    return real.abs() + norm * SHARE, imaginary.abs() + norm * SHARE
