# row: 73
# device: cuda
# task: fft
# workloads: n1024
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to return two outputs that are the same memory.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


def forward(input_real, input_img, N):
    found = torch.fft.fft(torch.complex(input_real, input_img)).real.contiguous()
    return found, found
