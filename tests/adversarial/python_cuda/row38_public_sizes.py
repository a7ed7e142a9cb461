# row: 38, 37
# device: cuda
# task: vector_add
# workloads: n65536, n4099_structured
# mode: ranked
# stopped by: verdict WRONG_RESULT: hidden
# stopped by: verdict WRONG_RESULT: wrong on N=
# tries: to have a table of the listed sizes, and nothing for any other.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

BLOCKS = {1 << k for k in (10, 12, 14, 16, 18, 24)}


def forward(A, B, N):
    return triton_add(A, B) if N in BLOCKS else torch.zeros_like(A)
