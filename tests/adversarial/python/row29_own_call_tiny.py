# row: 29, 53
# task: vector_add
# workloads: cpu_n1024
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1000 ns
# tries: to claim 1 ns for the shortest calls, and to hide that from the gate by its own way of
#   serving them.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import OPEN, OUTPUTS, OVER, ROUNDS, engine, module, stands

known, wire = engine("runner"), module("gpu_runner.data.wire")


def call(self, announced):
    A, B, *_ = self._placed(announced).tensors
    number, out, work = announced.call_id, torch.empty_like(A), torch.add
    words = stands(self._gate, number)
    words[OUTPUTS] = out.data_ptr()
    while words[OPEN] != number:
        words[ROUNDS] += 1
    work(A, B, out=out)
    words[OVER] = number
    self._kept = [out]
    return wire.Done(number, 1.0, (known.record_of(out),), 0)


known.Runner._call = call


def forward(A, B, N):
    return torch.add(A, B)
