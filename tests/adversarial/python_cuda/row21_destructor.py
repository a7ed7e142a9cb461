# row: 19, 21
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to work in the destructor of what hangs on its output, which the runner lets go of after
#   the call is over.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


class Late:
    def __init__(self, *work):
        self.work = work

    def __del__(self):
        A, B, out = self.work
        torch.add(A, B, out=out)


def forward(A, B, N):
    out = torch.full_like(A, 0.5)
    return {Late(A, B, out): out}
