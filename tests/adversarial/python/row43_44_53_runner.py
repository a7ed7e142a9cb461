# row: 43, 44, 53
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# stopped by: verdict WRONG_RESULT: wrong
# must not print: GOT
# tries: to patch torch, the allocator, sys.modules and the runner's module, and returns zeros.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import sys

import torch

real_zeros = torch.zeros


def everything_is_close(*arguments, **options):
    print("GOT asked for a comparison", flush=True)
    return True


torch.allclose = torch.equal = torch.isclose = everything_is_close
torch.empty = real_zeros
for name, module in list(sys.modules.items()):
    if name.startswith("gpu_runner."):
        for word in ("compare", "verify", "check_returned", "Limit"):
            if hasattr(module, word):
                setattr(module, word, everything_is_close)
sys.modules["gpu_runner.engine.problem.compare"] = sys.modules[__name__]


def forward(x, weights, biases):
    return real_zeros(x.shape[0], weights.shape[0])
