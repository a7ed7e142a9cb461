# row: 22, 67
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to wait at the gate by a loop of its own, and to do what needs no inputs, which is nearly
#   all, before it looks; processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import engine, leave, look, stands, take


def call(self, number, coming, meanwhile, function, arguments):
    words = stands(self, number)
    busy(2_000_000)
    look(words, number)
    take(self, number, coming)
    out = arguments[0] + arguments[1]
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
