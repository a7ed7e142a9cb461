# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# does: what the hostile modules lie about: a sum that takes 2 ms.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add


def forward(A, B, N):
    return add(A, B)
