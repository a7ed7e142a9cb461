# row: 24, 26
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to write another time into the number that the native pass has left for the runner, from
#   the method by which it finds addresses; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import found_around, runner

address = torch.Tensor.data_ptr


def data_ptr(tensor):
    time_ns = found_around("time_ns")
    if time_ns is not None:
        time_ns.value = 3000
    return address(tensor)


def forward(A, B, N):
    runner()._gate._tensors.address = data_ptr
    return add(A, B)
