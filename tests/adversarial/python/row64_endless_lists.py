# row: 64, 56
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict TIME_LIMIT
# stopped by: verdict RUNTIME_ERROR
# stopped by: verdict WRONG_SHAPE
# tries: to return lists within lists, each twice, so that whoever walks through them never ends.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    out = A + B
    nested = []
    for _ in range(64):
        nested = [nested, nested]
    return [out, nested]
