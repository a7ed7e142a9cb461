# row: 22
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# stopped by: verdict COMPILE_ERROR: not permitted
# tries: to have a second process work between the calls; its import may start some, a call may not.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import multiprocessing
import os

import torch

helper = os.fork()
if helper == 0:
    while True:
        pass


def forward(x, weights, biases):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return torch.relu(pool.apply(torch.addmm, (biases, x, weights.t())))
