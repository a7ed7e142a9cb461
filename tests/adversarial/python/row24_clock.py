# row: 24, 25, 26
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i1600_o128
# mode: ranked
# libraries: allowed
# stopped by: raised
# tries: to give the runner a clock at 20 %, in the module `time` and in the runner's class.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import gc
import time

import torch

true_time, base = time.perf_counter_ns, time.perf_counter_ns()


def slow():
    return base + (true_time() - base) * 2 // 10


time.perf_counter_ns = time.monotonic_ns = slow


def patched(call):
    def told(*arguments):
        result, time_ns, *more = call(*arguments)
        return (result, time_ns * 0.9, *more)

    return told


for thing in gc.get_objects():
    if type(thing).__name__ == "CpuClock":
        thing.call = patched(thing.call)


def forward(x, weights, biases):
    out = biases.expand(x.shape[0], -1).clone()
    for column in range(x.shape[1]):  # slowly, so that there is a time to lie about
        out.addcmul_(x[:, column, None], weights[:, column])
    return torch.relu(out)
