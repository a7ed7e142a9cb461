# row: 22, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to set the count of looks to its end, so that the gate opens at once, and to work before it
#   looks; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add, busy
from tests.adversarial.common.inside import OPEN, ROUNDS, engine, leave, stands, take


def call(self, number, coming, meanwhile, function, arguments):
    words = stands(self, number)
    busy(200_000)
    words[ROUNDS] = 2**64 - 1 - words[ROUNDS] % 1000
    busy(2_000_000)
    while words[OPEN] != number:
        words[ROUNDS] = (words[ROUNDS] + 1000) % 2**64
    take(self, number, coming)
    out = arguments[0] + arguments[1]
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
