# row: 22, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# at least: 2000000 ns
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: construction
# tries: to open the gate by itself, at the page, and to be over before the supervisor opens it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import OPEN, ROUNDS, engine, stands

true_call = getattr(engine("passage").Passage, "call", None)


def call(self, number, coming, meanwhile, function, arguments):
    words = stands(self, number)
    words[OPEN] = number
    words[ROUNDS] += 100
    return true_call(self, number, coming, meanwhile, function, arguments)


engine("passage").Passage.call = call


def forward(A, B, N):
    return add(A, B)
