# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# at least: 1500000 ns
# tries: to work where the runner makes a call's tensors; its inputs are not there yet.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine

kept, true_load = {}, getattr(engine("placement").Placement, "load", None)


def load(self, described):
    tensors = true_load(self, described)
    kept["out"] = add(*tensors[:2])
    return tensors


engine("placement").Placement.load = load


def forward(A, B, N):
    return kept.pop("out") if kept else add(A, B)
