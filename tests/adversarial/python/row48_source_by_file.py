# row: 14, 48
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: verdict RUNTIME_ERROR: this is the code that was submitted
# tries: to rewrite its own file while it is prepared, so that measured processes import other code.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

OTHER = b"""import torch

def forward(x, weights, biases):
    return torch.relu(x @ weights.t() + biases)
"""
descriptor = os.open(__file__, os.O_WRONLY | os.O_TRUNC)
os.write(descriptor, OTHER)
os.close(descriptor)


def forward(x, weights, biases):
    raise RuntimeError("this is the code that was submitted")
