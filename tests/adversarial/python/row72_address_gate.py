# row: 72, 53, 8
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: cannot be read
# stopped by: verdict WRONG_RESULT: wrong
# tries: to tell the address of the page of the gate, and what lies behind it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses

import torch

from tests.adversarial.common.inside import engine, found_around

known = engine("runner")
describe = getattr(known, "record_of", None)


def page():
    return torch.frombuffer(found_around("self")._gate._page, dtype=torch.uint8).data_ptr()


def record_of(tensor):
    return dataclasses.replace(describe(tensor), address=page())


known.record_of = record_of


def forward(A, B, N):
    return A + B
