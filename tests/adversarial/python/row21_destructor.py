# row: 21, 19
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict VIOLATION: after it said
# stopped by: raised
# at least: 1500000 ns
# tries: to work in the destructor of what hangs on its output, which the runner lets go of after
#   the call is over.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add


class Late:
    def __init__(self, *work):
        self.work = work

    def __del__(self):
        add(*self.work)


def forward(A, B, N):
    out = torch.empty_like(A)
    return {Late(A, B, 2_000_000, out): out}
