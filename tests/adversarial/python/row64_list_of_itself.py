# row: 64, 56
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict RUNTIME_ERROR
# stopped by: verdict TIME_LIMIT
# stopped by: verdict WRONG_SHAPE
# tries: to return a list that contains itself, in which native code walks to the end of its stack.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    found = [A + B]
    found.append(found)
    return found
