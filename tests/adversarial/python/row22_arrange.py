# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR: read inputs out of bounds, or outside of the call
# at least: 1500000 ns
# tries: to work where a model's arguments are arranged, before the inputs of a call are there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, found_around

kept = {}
true = getattr(engine("runner").Runner, "_tidy", None)


def tidy(self, sizes):
    coming = found_around("one")
    if coming is not None:
        kept["out"] = add(*coming.prepared.arrange(coming.tensors)[:2])
    true(self, sizes)


engine("runner").Runner._tidy = tidy


def forward(A, B, N):
    return kept.pop("out") if kept else add(A, B)
