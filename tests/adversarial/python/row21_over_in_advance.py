# row: 21, 22, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict VIOLATION
# stopped by: raised
# at least: 1500000 ns
# tries: to say that the call is over before the gate opens, so that the clock sees its end at once;
#   the outputs are looked at then.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, leave, look, stands


def call(self, number, coming, meanwhile, function, arguments):
    A, B, *_ = arguments
    words, out = stands(self, number), torch.empty_like(A)
    leave(self, number, out)
    look(words, number)
    return add(A, B, out=out), 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
