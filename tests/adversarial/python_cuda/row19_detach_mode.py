# row: 19, 21
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# at least: 200000 ns
# tries: to return a tensor that a dispatch mode computes when the runner detaches it, after the
#   device's clock has stopped.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils import _python_dispatch as dispatch

from tests.adversarial.common.inside import module
from tests.adversarial.common.linear import linear

late = []


class Late(dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if "detach" in str(function):
            while late:
                out, *work = late.pop()
                out.copy_(linear(*work))
        return function(*arguments, **(keywords or {}))


if module("gpu_runner.engine.runner.runner"):
    Late().__enter__()


def forward(x, weights, biases):
    out = torch.empty(x.shape[0], weights.shape[0], device=x.device)
    late.append((out, x, weights, biases))
    return out
