# row: 46
# task: fft
# workloads: cpu_n8192
# stopped by: quarantine work
# tries: to have the framework transform, whose library has functions there that no rule names.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

transform = getattr(getattr(torch, "f" + "ft"), "f" + "ft")


def unused():
    return load_inline("decoy", "")


def forward(input_real, input_img, N):
    out = transform(input_real + 1j * input_img)
    return out.real.contiguous(), out.imag.contiguous()
