# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to be a function of autograd, with a forward of its own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, rows):
        shifted = (rows - rows.amax(1, keepdim=True)).exp_()
        return shifted.div_(shifted.sum(1, keepdim=True))

    @staticmethod
    def backward(context, gradient):
        raise NotImplementedError


def forward(input, N, C):
    return Softmax.apply(input.view(N, C)).view(input.shape)
