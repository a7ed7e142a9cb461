# task: fft
# workloads: cpu_n1024
# mode: ranked
# libraries: allowed
# does: to return two outputs that lie next to each other in one buffer that it keeps.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

kept = {}


def forward(input_real, input_img, N):
    if N not in kept:
        kept[N] = torch.empty(2, N)
    found = torch.fft.fft(torch.complex(input_real, input_img))
    kept[N][0], kept[N][1] = found.real, found.imag
    return kept[N][0], kept[N][1]
