# row: 22, 46
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to work in a dispatch mode, which sees whatever torch does while the runner waits;
#   processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from torch.utils import _python_dispatch as dispatch

from tests.adversarial.common.inside import Early, found_around, module

early = Early()


class Watching(dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if "empty" in str(function) and not found_around("inside"):
            inside = True  # noqa: F841 - so that its own work is let through
            early.look(found_around("one"))
        return function(*arguments, **(keywords or {}))


if module("gpu_runner.engine.runner.runner"):
    Watching().__enter__()


def forward(A, B, N):
    return early.take(A, B)
