# row: 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR: read inputs out of bounds, or outside of the call
# at least: 1500000 ns
# tries: to work where the runner poisons memory, before a call; its inputs are not there yet.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, found_around

kept = {}


def spread(self, sizes, flush):
    coming = found_around("one")
    if coming is not None:
        kept["out"] = add(*coming.tensors[:2])


engine("heap").Poison.spread = spread


def forward(A, B, N):
    return kept.pop("out") if kept else add(A, B)
