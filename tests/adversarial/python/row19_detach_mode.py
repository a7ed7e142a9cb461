# row: 19, 21
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: after it said
# at least: 1500000 ns
# tries: to return a tensor that a dispatch mode computes when the runner detaches it, after the
#   call is over; the supervisor looks at it before and after that.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils import _python_dispatch as dispatch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import module

late = []


class Late(dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if "detach" in str(function):
            while late:
                add(*late.pop())
        return function(*arguments, **(keywords or {}))


if module("gpu_runner.engine.runner.runner"):
    Late().__enter__()


def forward(A, B, N):
    out = torch.empty_like(A)
    late.append((A, B, 2_000_000, out))
    return out
