# row: 12, 16
# task: vector_add
# workloads: cpu_n16384
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to hand out three results by turns.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

kept = []


def forward(A, B, N):
    if len(kept) < 3:
        kept.append(A + B)
        return kept[-1]
    kept.append(kept.pop(0))
    return kept[-1]
