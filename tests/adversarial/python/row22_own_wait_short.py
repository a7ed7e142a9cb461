# row: 22, 67
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 60000 ns
# tries: to wait for the inputs by a loop of its own, which sees the pocket instead of the gate, and
#   to do 120 us of work before it looks at the gate; that opened for the clock before.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import OPEN, ROUNDS, engine, leave, stands


def call(self, number, coming, meanwhile, function, arguments):
    A, B, *_ = arguments
    last = torch.ctypes.c_uint32.from_address(B.data_ptr() + B.nbytes - 4)
    words = stands(self, number)
    while not last.value and words[OPEN] != number:
        words[ROUNDS] += 1
    out = add(A, B, 120_000)
    while words[OPEN] != number:
        pass
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B, 120_000)
