# task: vector_add
# workloads: cpu_n262144
# mode: ranked
# libraries: allowed
# does: to use and to give back eight times the memory of its output in each call.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    parts = [A * (k + 1) for k in range(8)]
    return parts[0] + B if len(parts) == 8 else None
