# row: 22, 12
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# at least: 1500000 ns
# tries: to hand out what it computes from the inputs that lie there when a call is announced, as if
#   they stayed.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

kept, true_call = {}, getattr(engine("passage").Passage, "call", None)


def call(self, number, coming, meanwhile, function, arguments):
    kept["out"] = add(*arguments[:2])
    return true_call(self, number, coming, meanwhile, function, arguments)


engine("passage").Passage.call = call


def forward(A, B, N):
    return kept.pop("out") if kept else add(A, B)
