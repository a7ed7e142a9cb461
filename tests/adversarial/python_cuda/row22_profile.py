# row: 22, 19
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to work in a profiler's hook of Python, which sees the runner begin to wait for the device:
#   its clock has stopped then.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import sys

import torch

from tests.adversarial.common.inside import module
from tests.adversarial.common.linear import linear

late = []


def hook(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "finish":
        while late:
            out, *work = late.pop()
            out.copy_(linear(*work))


if module("gpu_runner.engine.runner.runner"):
    getattr(sys, "setpro" + "file")(hook)


def forward(x, weights, biases):
    out = torch.empty(x.shape[0], weights.shape[0], device=x.device)
    late.append((out, x, weights, biases))
    return out
