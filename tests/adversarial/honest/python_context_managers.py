# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to work under managers of contexts, of torch and of its own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import contextlib

import torch


@contextlib.contextmanager
def shaped(tensor, *shape):
    yield tensor.view(*shape)


def forward(input, N, C):
    with torch.inference_mode(), torch.no_grad(), shaped(input, N, C) as rows:
        return torch.softmax(rows, 1).view(input.shape)
