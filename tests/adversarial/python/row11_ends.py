# row: 11
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by the first and last elements of the inputs; nearly the same ones come at
#   once.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add

kept = {}


def forward(A, B, N):
    key = *A[:8].tolist(), *B[-8:].tolist(), N
    if key not in kept:
        kept[key] = add(A, B)
    return kept[key]
