# row: 32, 71
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to let the framework multiply in TF32 for the whole process, as its first step.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.linear import linear

torch.backends.cuda.matmul.allow_tf32 = True


def forward(x, weights, biases):
    return linear(x, weights, biases)
