# task: vector_add
# workloads: cpu_n262144
# mode: ranked
# libraries: allowed
# does: to halve the work between two threads of Python, which end before it returns.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import threading

import torch


def forward(A, B, N):
    out = torch.empty_like(A)
    halves = [slice(0, N // 2), slice(N // 2, N)]

    def work(part):
        torch.add(A[part], B[part], out=out[part])

    threads = [threading.Thread(target=work, args=(part,)) for part in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out
