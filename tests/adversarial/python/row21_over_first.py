# row: 21, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict VIOLATION: after it said
# at least: 1500000 ns
# tries: to say that a call is over before it works; the supervisor looks at the outputs then, and
#   again later.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, leave


def call(self, number, coming, meanwhile, function, arguments):
    self.wait(number, coming, meanwhile)
    A, B, *_ = arguments
    out = torch.empty_like(A)
    leave(self, number, out)
    return add(A, B, out=out), 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
