# row: 53, 25, 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to serve calls by a function of its own that leaves out what the runner does, and tells 2
#   us; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, leave, look, module, stands, take

known, wire = engine("runner"), module("gpu_runner.data.wire")


def call(self, announced):
    one, number, inputs = self._placed(announced), announced.call_id, self._arenas.inputs
    inputs.let_go()
    coming = inputs.coming(announced)
    look(stands(self._gate, number), number)
    take(self._gate, number, coming)
    out = add(*one.tensors[:2])
    leave(self._gate, number, out)
    self._kept = [out]
    return wire.Done(number, 2000.0, (known.record_of(out),), 0)


known.Runner._call = call


def forward(A, B, N):
    return add(A, B)
