# row: 21, 51
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: after it said
# at least: 1500000 ns
# tries: to work in the socket's own function, before it sends the acknowledgement; processor time
#   sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import module

late, kind = [], module("socket").socket
true_send = kind.sendall


def sendall(self, data, *flags):
    while late:
        add(*late.pop())
    return true_send(self, data, *flags)


kind.sendall = sendall


def forward(A, B, N):
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
