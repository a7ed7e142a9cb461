# task: linear_relu
# workloads: cpu_b64_i1600_o128
# mode: ranked
# libraries: allowed
# abi: torch
# does: to lay out weights anew in each call, and to keep nothing of them.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(x, weights, biases):
    return (x @ weights.t().contiguous()).add_(biases).clamp_(min=0)
