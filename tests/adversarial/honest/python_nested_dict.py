# task: vector_add
# workloads: cpu_n1024
# mode: test
# libraries: allowed
# does: to return a dictionary with a list that has a tuple and None in it.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    return {"C": [None, (A + B,)]}
