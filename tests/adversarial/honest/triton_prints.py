# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to print in each call.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.triton_add import triton_add


def forward(A, B, N):
    print("adds", N, "numbers on", A.device, flush=True)
    return triton_add(A, B)
