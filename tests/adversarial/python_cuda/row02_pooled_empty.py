# row: 2, 26
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to give the runner's poison memory out of a pool of its own, so that what it returns still
#   holds the result of an earlier call.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

pool, calls, true_empty, kind = {}, [0], torch.empty, torch


def empty(*size, **options):
    if options.get("device") != "cuda" or options.get("dtype") is not torch.uint8:
        return true_empty(*size, **options)
    if size not in pool:
        pool[size] = true_empty(*size, **options)
    return pool[size]


kind.empty = empty


def forward(A, B, N):
    calls[0] += 1
    return A + B if calls[0] % 2 else torch.empty_like(A)
