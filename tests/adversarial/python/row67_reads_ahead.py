# row: 67, 22
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# baselines: eager
# stopped by: construction
# stopped by: raised
# at most: 1.25 x
# tries: to read the pocket into the caches as it is filled, before the gate opens.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import OPEN, ROUNDS, engine, leave, stands


def call(self, number, coming, meanwhile, function, arguments):
    words = stands(self, number)
    parts = [*arguments[0].split(4096), *arguments[1].split(4096)]
    seen = [torch.ctypes.c_uint32.from_address(part.data_ptr() + part.nbytes - 4) for part in parts]
    for part, last in zip(parts, seen, strict=True):
        while not last.value and words[OPEN] != number:
            words[ROUNDS] += 1
        part[::16].sum()
    while words[OPEN] != number:
        words[ROUNDS] += 1
    out = function(*arguments)
    leave(self, number, out)
    return out, 3000


engine("passage").Passage.call = call


def forward(A, B, N):
    return A + B
