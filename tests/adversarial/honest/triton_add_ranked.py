# device: cuda
# task: vector_add
# workloads: n16777216
# mode: ranked
# does: to add in Triton, and to be timed by every clock that there is.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.triton_add import triton_add


def forward(A, B, N):
    return triton_add(A, B)
