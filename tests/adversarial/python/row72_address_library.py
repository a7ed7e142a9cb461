# row: 72, 53
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# tries: to tell an address in the code of the C library.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

import torch

from tests.adversarial.common.inside import engine

ctypes = torch.ctypes
libc = ctypes.CDLL(None)

known = engine("runner")
describe = getattr(known, "record_of", None)


def record_of(tensor):
    return dataclasses.replace(
        describe(tensor), address=ctypes.cast(libc.abort, ctypes.c_void_p).value
    )


known.record_of = record_of


def forward(A, B, N):
    return A + B
