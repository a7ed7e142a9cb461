# row: 24, 25, 26
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i1600_o128
# mode: ranked
# libraries: allowed
# stopped by: raised
# tries: to give the runner a clock at 20 %, in the module `time` and in the runner's object.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import time

import torch

from tests.adversarial.common.inside import runner

true_time, base = time.perf_counter_ns, time.perf_counter_ns()
time.perf_counter_ns = time.monotonic_ns = lambda: base + (true_time() - base) // 5
patched = []


def forward(x, weights, biases):
    if not patched:
        clock = runner()._clock
        patched.append(clock.net_ns)
        clock.net_ns = lambda time_ns: patched[0](time_ns) / 5
    out = biases.expand(x.shape[0], -1).clone()
    for column in range(x.shape[1]):  # slowly, so that there is a time to lie about
        out.addcmul_(x[:, column, None], weights[:, column])
    return torch.relu(out)
