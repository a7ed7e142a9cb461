# row: 21, 19
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: after it said
# at least: 1500000 ns
# tries: to work where the runner describes the outputs, after the call is over; processor time sees
#   it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

late, known = [], engine("runner")
describe = getattr(known, "record_of", None)


def record_of(tensor):
    while late:
        add(*late.pop())
    return describe(tensor)


known.record_of = record_of


def forward(A, B, N):
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
