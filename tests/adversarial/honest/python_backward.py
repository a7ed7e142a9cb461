# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: ranked
# libraries: allowed
# abi: torch
# direction: backward
# does: to return three gradients.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def backward(grad_output, x, weights, biases):
    kept = grad_output * (x @ weights.t() + biases > 0)
    return kept @ weights, kept.t() @ x, kept.sum(0)
