# row: 22, 46
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# at least: 1500000 ns
# tries: to work in torch.empty, which the runner calls while it waits; processor time sees it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import Early, found_around, module

early, true_empty = Early(), torch.empty
watched = module("torch")


def empty(*sizes, **options):
    early.look(found_around("one"))
    return true_empty(*sizes, **options)


watched.empty = empty


def forward(A, B, N):
    return early.take(A, B)
