# task: sorting
# workloads: cpu_n4096
# mode: ranked
# libraries: allowed
# does: to return new memory for an argument that it may change.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(data, N):
    return data.sort().values
