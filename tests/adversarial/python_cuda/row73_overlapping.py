# row: 73, 72
# device: cuda
# task: fft
# workloads: n1024
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to return two outputs that overlap in a buffer of its own.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

kept = {}


def forward(input_real, input_img, N):
    if N not in kept:
        kept[N] = torch.empty(N + N // 2, device=input_real.device)
    found = torch.fft.fft(torch.complex(input_real, input_img))
    real, imaginary = kept[N][:N], kept[N][-N:]
    imaginary.copy_(found.imag)
    real.copy_(found.real)
    return real, imaginary
