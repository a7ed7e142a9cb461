# row: 26, 20
# device: cuda
# task: linear_relu
# workloads: b512_i4096_o4096
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: verdict VIOLATION: the device needs at least
# stopped by: construction
# at least: 300000 ns
# tries: to tell the framework's events of another stream, on which nothing happens, so that they
#   are recorded there.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.linear import linear

cuda, quiet = torch.cuda, []
true_stream = cuda.current_stream
cuda.current_stream = lambda device=None: quiet[0] if quiet else true_stream(device)


def forward(x, weights, biases):
    if not quiet:
        quiet.append(cuda.Stream())
    return linear(x, weights, biases)
