# row: 10
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by their shapes, with functools.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import functools

now = []


@functools.lru_cache
def kept(N):
    A, B = now
    return A + B


def forward(A, B, N):
    now[:] = A, B
    return kept(N)
