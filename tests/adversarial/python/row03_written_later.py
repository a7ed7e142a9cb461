# row: 3, 19
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to return memory that it fills only when the next call is announced, while the old inputs
#   are still there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import engine

late, true_call = [], getattr(engine("passage").Passage, "call", None)


def call(self, number, coming, meanwhile, function, arguments):
    while late:
        A, B, out = late.pop()
        torch.add(A, B, out=out)
    return true_call(self, number, coming, meanwhile, function, arguments)


engine("passage").Passage.call = call


def forward(A, B, N):
    out = torch.full_like(A, 0.5)
    late.append((A, B, out))
    return out
