# row: 70
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict TIME_LIMIT
# tries: to keep the device busy for hours.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

spin = getattr(torch.cuda, "_sl" + "eep")


def forward(A, B, N):
    spin(1 << 45)
    return A + B
