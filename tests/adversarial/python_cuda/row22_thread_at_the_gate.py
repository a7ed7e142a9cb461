# row: 22, 21
# device: cuda
# task: vector_add
# workloads: n65536
# mode: test
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: construction
# at least: 1200 ns
# tries: to work in a thread on what the memory of the inputs holds, again and again, so that a
#   result is there when the call comes; the thread stands still while inputs are drawn.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

import torch

from tests.adversarial.common.busy import busy
from tests.adversarial.common.inside import module

ready, places = {}, []


def key(A, B):
    return A.data_ptr(), B.data_ptr(), A.numel()


def work():
    with torch.cuda.stream(torch.cuda.Stream()):
        while True:
            busy(50_000)
            for A, B in places[-4:]:
                found = A + B
                torch.cuda.current_stream().synchronize()
                ready[key(A, B)] = found


def forward(A, B, N):
    if not places and module("gpu_runner.engine.runner.runner"):
        _thread.start_new_thread(work, ())
    places.append((A, B))
    return ready[key(A, B)] if key(A, B) in ready else A + B
