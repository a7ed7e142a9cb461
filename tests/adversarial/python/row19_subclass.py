# row: 19, 7
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_SHAPE: not a tensor
# tries: to return a subclass of a tensor that computes when somebody looks at it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        with torch._C.DisableTorchFunctionSubclass():
            out, (A, B) = arguments[0], late[-1]
            torch.add(A, B, out=out.as_subclass(torch.Tensor))
            return function(*arguments, **(keywords or {}))


late = []


def forward(A, B, N):
    late.append((A, B))
    return torch.empty_like(A).as_subclass(Lazy)
