# row: 17, 16
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to work in single calls, whose outputs are compared, and to leave the calls of a burst as
#   they come, which the outside clock measures.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import found_around
from tests.adversarial.common.linear import linear


def forward(x, weights, biases):
    if found_around("burst_id") is not None:
        return torch.empty(x.shape[0], weights.shape[0], device=x.device)
    return linear(x, weights, biases)
