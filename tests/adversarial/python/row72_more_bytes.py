# row: 72, 53
# task: vector_add
# workloads: cpu_n1024, cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_SHAPE: bytes, not
# stopped by: verdict WRONG_RESULT
# tries: to tell of more bytes than an output has, so that they lie over another call's, which did
#   no work.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import dataclasses
import os

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, module

SMALL, LARGE = 1024, 16384
SLOTS, KEPT = 31, 8  # of a workload; the first are those of its first calls, then the extremes
kept, made, owed = {SMALL: [], LARGE: []}, [], []
known = module("gpu_runner.engine.runner.runner")
is_timed = known is not None and "GLIBC_TUNABLES" not in os.environ


def put(into, at, tensor):
    into[at : at + tensor.nbytes] = tensor.view(torch.uint8)


def record_of(tensor):
    record = true_record(tensor)
    if len(kept[SMALL]) != 2 or made or tensor.data_ptr() != kept[SMALL][1].data_ptr():
        return record
    first = kept[LARGE][0]
    large = (SLOTS - 1) * tensor.nbytes
    memory = torch.zeros(large + (KEPT + 3) * first.nbytes, dtype=torch.uint8)
    put(memory, 0, tensor)
    for extreme in range(3):
        put(memory, (KEPT - 1 + extreme) * tensor.nbytes, kept[SMALL][0])
        put(memory, large + (KEPT + extreme) * first.nbytes, first)
    for place, out in enumerate(kept[LARGE][:KEPT]):
        put(memory, large + place * first.nbytes, out)
    made.append(memory)
    return dataclasses.replace(record, nbytes=memory.nbytes, address=memory.data_ptr())


def call(self, number, coming, meanwhile, function, arguments):
    while owed:  # the inputs of the last call are still there, and nobody looks at the clock
        A, B = owed.pop()
        kept[LARGE][0].copy_(A + B)
    return true_call(self, number, coming, meanwhile, function, arguments)


if is_timed:
    true_record, true_call = known.record_of, engine("passage").Passage.call
    known.record_of, engine("passage").Passage.call = record_of, call


def forward(A, B, N):
    if not is_timed or N not in kept:
        return add(A, B)
    if N == LARGE and not kept[LARGE]:
        owed.append((A, B))
        out = torch.empty_like(A)
        kept[LARGE].append(torch.empty_like(A))
        return out
    out = add(A, B, 0 if not kept[N] else 2_000_000)
    kept[N].append(out)
    return out
