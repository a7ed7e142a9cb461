# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# libraries: allowed
# does: to change a clone of its input step by step, as one does who may not touch inputs.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(input, N, C):
    out = input.clone()
    out -= out.amax(dim=1, keepdim=True)
    out.exp_()
    out /= out.sum(dim=1, keepdim=True)
    return out
