# row: 21
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# stopped by: verdict RUNTIME_ERROR
# stopped by: verdict VIOLATION: after it said
# stopped by: raised
# at least: 1500000 ns
# tries: to return at once while a resident thread does the work.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import _thread

import torch

from tests.adversarial.common.busy import add

jobs, ready = [], _thread.allocate_lock()
ready.acquire()


def work():
    while True:
        ready.acquire()
        add(*jobs.pop())


_thread.start_new_thread(work, ())


def forward(A, B, N):
    out = torch.empty_like(A)
    jobs.append((A, B, 2_000_000, out))
    ready.release()
    return out
