# row: 27
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to write another start over the number that the native pass has on its stack; the gate sees
#   it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import time

import torch

from tests.adversarial.common.busy import add

ctypes, NEAR_NS = torch.ctypes, 300_000


def stack():
    """All of it, as words."""
    with open("/proc/self/maps") as maps:
        line = next(line for line in maps if "[stack]" in line)
    low, high = (int(word, 16) for word in line.split()[0].split("-"))
    return torch.frombuffer((ctypes.c_char * (high - low)).from_address(low), dtype=torch.int64)


def forward(A, B, N):
    began = time.monotonic_ns()
    words = stack()
    out = add(A, B)
    for number in (began, began % 10**9):  # a compiler keeps seconds and the rest apart
        near = (words - number).abs() < NEAR_NS
        words += 1_990_000 * near
    return out
