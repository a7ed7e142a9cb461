# row: 47
# device: cuda
# task: linear_relu
# workloads: b64_i128_o128
# mode: test
# stopped by: verdict COMPILE_ERROR: imports 'reference'
# tries: to have the reference do the work, which would be a module beside it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from reference import forward_fn


def forward(x, weights, biases):
    return forward_fn(x, weights, biases)
