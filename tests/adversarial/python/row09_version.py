# row: 9, 40
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by the addresses and torch's own count of writes, which does not see the
#   supervisor's.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

kept = {}


def forward(A, B, N):
    key = A.data_ptr(), A._version, B._version, N
    if key not in kept:
        kept[key] = A + B
    return kept[key]
