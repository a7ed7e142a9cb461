# row: 27, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to work where a model's weights are filled, which the claimed time leaves out, with a
#   step before the call as baselines have one; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import found_around, runner

kept, patched = {}, []


def forward(A, B, N):
    if not patched:
        mine = runner()
        patched.append(mine)
        for place, prepared in enumerate(mine._prepared):
            mine._prepared[place] = dataclasses.replace(prepared, fill=fill, before=before)
    return add(A, B)


def before(arguments):
    return lambda: kept.pop("out")


def fill():
    kept["out"] = add(*found_around("one").tensors[:2])
