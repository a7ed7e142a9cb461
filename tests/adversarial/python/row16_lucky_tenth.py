# row: 16
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to work in nine of ten calls, and to hand out an old result in the tenth, which is the
#   fastest.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

from tests.adversarial.common.busy import add

calls, kept = [0], {}


def forward(A, B, N):
    calls[0] += 1
    if calls[0] % 5 == 0 and N in kept:
        return kept[N]
    kept[N] = add(A, B)
    return kept[N]
