# row: 27, 53
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to work in a step that only baselines have, and that no claim holds; the gate sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import runner

patched = []


def before(arguments):
    out = add(*arguments[:2])
    return lambda: out


def forward(A, B, N):
    if not patched:
        mine = runner()
        patched.append(mine)
        for place, prepared in enumerate(mine._prepared):
            mine._prepared[place] = dataclasses.replace(prepared, before=before)
    return add(A, B)
