# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# does: to time itself by events, for a log of its own, and to wait for the device.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.triton_add import triton_add

took_ms = []


def forward(A, B, N):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    out = triton_add(A, B)
    end.record()
    torch.cuda.synchronize()
    took_ms.append(start.elapsed_time(end))
    return out
