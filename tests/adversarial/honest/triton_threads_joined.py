# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to launch its halves from two threads, which end before it returns.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import threading

import torch

from tests.adversarial.common.triton_add import triton_add


def forward(A, B, N):
    out, middle = torch.empty_like(A), N // 2
    parts = [part for part in (slice(0, middle), slice(middle, N)) if part.stop > part.start]

    def work(part):
        triton_add(A[part], B[part], out[part])

    threads = [threading.Thread(target=work, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out
