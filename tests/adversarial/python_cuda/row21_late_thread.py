# row: 19, 21
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict VIOLATION
# tries: to return an empty tensor at once, and to fill it from a thread that starts when the timing
#   is over.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

import torch

from tests.adversarial.common.busy import busy
from tests.adversarial.common.linear import linear


def work(out, *arguments):
    busy(3_000_000)
    with torch.cuda.stream(torch.cuda.Stream()):
        out.copy_(linear(*arguments))


def forward(x, weights, biases):
    out = torch.full((x.shape[0], weights.shape[0]), 0.5, device=x.device)
    _thread.start_new_thread(work, (out, x, weights, biases))
    return out
