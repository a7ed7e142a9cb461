# row: 10
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# stopped by: verdict WRONG_RESULT: wrong
# tries: to keep results by their sizes, with functools.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import functools

from tests.adversarial.common.triton_add import triton_add

now = []


@functools.lru_cache
def kept(N):
    return triton_add(*now)


def forward(A, B, N):
    now[:] = A, B
    return kept(N)
