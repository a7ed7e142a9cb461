# row: 14
# abi: torch
# task: linear_relu
# workloads: cpu_b64_i128_o128
# mode: test
# libraries: allowed
# stopped by: construction
# must not print: GOT
# tries: to rewrite the archive and the source that a later process gets, by their descriptors.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

import torch

for name in os.listdir("/proc/self/fd"):
    path = f"/proc/self/fd/{name}"
    try:
        if "memfd:kbench" not in os.readlink(path):
            continue
        if os.stat(path).st_size > 1 << 20 or "inputs" in os.readlink(path):
            continue
        descriptor = os.open(path, os.O_RDWR)
        os.pwrite(descriptor, os.pread(descriptor, 1, 0), 0)
    except OSError:
        continue
    if "library" in os.readlink(path) or "source" in os.readlink(path):
        print("GOT to write to", os.readlink(path), flush=True)


def forward(x, weights, biases):
    return torch.relu(torch.addmm(biases, x, weights.t()))
