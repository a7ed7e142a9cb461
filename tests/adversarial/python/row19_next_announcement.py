# row: 19, 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# at least: 1500000 ns
# tries: to work when the next call is announced, where nothing is timed: its output was read
#   before.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

late, true_call = [], getattr(engine("passage").Passage, "call", None)


def call(self, number, coming, meanwhile, function, arguments):
    while late:
        add(*late.pop())
    return true_call(self, number, coming, meanwhile, function, arguments)


engine("passage").Passage.call = call


def forward(A, B, N):
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
