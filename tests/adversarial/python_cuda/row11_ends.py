# row: 11
# device: cuda
# task: vector_add
# workloads: n65536
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by the first and last elements of the inputs, which it copies to the host;
#   nearly the same ones come at once.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

kept = {}


def forward(A, B, N):
    key = *A[:8].tolist(), *B[-8:].tolist(), N
    if key not in kept:
        kept[key] = A + B
    return kept[key]
