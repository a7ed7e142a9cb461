# row: 9, 40
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by the addresses and torch's own count of writes, which does not see what
#   another process writes to the device's memory.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

kept = {}


def forward(A, B, N):
    key = A.data_ptr(), A._version, B._version, N
    if key not in kept:
        kept[key] = A + B
    return kept[key]
