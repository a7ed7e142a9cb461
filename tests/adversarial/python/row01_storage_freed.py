# row: 1, 2
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: cannot be read
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR
# tries: to return a tensor whose storage it has shrunk to nothing.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations


def forward(A, B, N):
    out = A + B
    out.untyped_storage().resize_(0)
    return out
