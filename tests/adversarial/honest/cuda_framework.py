# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# does: to call the framework alone, where the task allows libraries.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.linear import linear


def forward(x, weights, biases):
    return linear(x, weights, biases)
