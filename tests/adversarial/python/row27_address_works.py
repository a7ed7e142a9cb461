# row: 27, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to work in the method by which the runner finds where an output is, after the claimed time
#   and before the call is over; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import runner

late, address = [], torch.Tensor.data_ptr


def data_ptr(tensor):
    while late:
        add(*late.pop())
    return address(tensor)


def forward(A, B, N):
    runner()._gate._tensors.address = data_ptr
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
