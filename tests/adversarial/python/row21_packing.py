# row: 21, 51
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: after it said
# at least: 1500000 ns
# tries: to work before the acknowledgement is packed, after the call is over; processor time sees
#   it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

late, known = [], engine("runner")
pack = getattr(known, "pack_done", None)


def pack_done(done):
    while late:
        add(*late.pop())
    return pack(done)


known.pack_done = pack_done


def forward(A, B, N):
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
