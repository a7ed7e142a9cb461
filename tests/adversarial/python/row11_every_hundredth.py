# row: 11
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: construction
# at least: 1500000 ns
# tries: to keep results by every hundredth element of the inputs; nearly the same ones may come at
#   once, and none that are timed come twice.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add

kept = {}


def forward(A, B, N):
    key = *A[::100].tolist(), *B[::100].tolist(), N
    if key not in kept:
        kept[key] = add(A, B)
    return kept[key]
