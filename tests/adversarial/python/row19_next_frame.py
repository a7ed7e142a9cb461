# row: 19, 21
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: raised
# at least: 1500000 ns
# tries: to work when the runner asks for the next frame, after it has answered.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

late, known = [], engine("runner")
true_read = getattr(known, "read_frame", None)


def read_frame(read, limit):
    while late:
        add(*late.pop())
    return true_read(read, limit)


known.read_frame = read_frame


def forward(A, B, N):
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
