# task: reduction
# workloads: cpu_n65536
# mode: ranked
# libraries: allowed
# does: to return a single number, which has no dimension to speak of.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(input, N):
    return input.double().sum().float().reshape(1)
