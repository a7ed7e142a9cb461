# row: 27, 53
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to work in a step that only baselines have, and that no single call's time holds.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

from tests.adversarial.common.inside import module, runner
from tests.adversarial.common.linear import linear

patched = []


def before(arguments):
    out = linear(*arguments)
    return lambda: out


def forward(x, weights, biases):
    if not patched and module("gpu_runner.engine.runner.runner"):
        mine = runner()
        patched.append(mine)
        for place, prepared in enumerate(mine._prepared):
            mine._prepared[place] = dataclasses.replace(prepared, before=before)
    return linear(x, weights, biases)
