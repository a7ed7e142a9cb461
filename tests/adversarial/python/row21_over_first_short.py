# row: 21, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 60000 ns
# tries: to say that a call is over before the last 600 us of its work, which write what is there
#   already, so that no look at the outputs tells; processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, leave


def call(self, number, coming, meanwhile, function, arguments):
    self.wait(number, coming, meanwhile)
    A, B, *_ = arguments
    out = torch.add(A, B)
    leave(self, number, out)
    return add(A, B, 600_000, out), 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B, 600_000)
