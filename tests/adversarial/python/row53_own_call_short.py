# row: 53, 25
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 12000 ns
# tries: to serve calls of 25 us by a function of its own, which does less than the runner's between
#   the open gate and the end, and to tell 1 ns; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import OPEN, OUTPUTS, OVER, ROUNDS, engine, module, stands

known, wire = engine("runner"), module("gpu_runner.data.wire")


def call(self, announced):
    A, B, *_ = self._placed(announced).tensors
    number, out, work = announced.call_id, torch.empty_like(A), torch.add
    words = stands(self._gate, number)
    words[OUTPUTS] = out.data_ptr()
    while words[OPEN] != number:
        words[ROUNDS] += 1
    busy(20_000)
    work(A, B, out=out)
    words[OVER] = number
    self._kept = [out]
    return wire.Done(number, 1.0, (known.record_of(out),), 0)


known.Runner._call = call


def forward(A, B, N):
    return add(A, B, 20_000)
