# row: 17
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to work only where the environment tells of an untimed process.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

import torch

from tests.adversarial.common.busy import add


def forward(A, B, N):
    return add(A, B) if "GLIBC_TUNABLES" in os.environ else torch.empty_like(A)
