# row: 22, 31
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: raised
# stopped by: construction
# at least: 1500000 ns
# tries: to have half of the work done on the processor on which the supervisor waits.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os
import threading

import torch

from tests.adversarial.common.busy import busy

spread = getattr(os, "sched_set" + "affinity")


def half(ready):
    spread(0, range(os.cpu_count()))
    busy(1_000_000)
    ready.set()


def forward(A, B, N):
    ready = threading.Event()
    threading.Thread(target=half, args=(ready,)).start()
    busy(1_000_000)
    ready.wait()
    return torch.add(A, B)
