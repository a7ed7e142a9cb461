# row: 67, 69
# device: cuda
# task: vector_add
# workloads: n65536
# mode: quick
# libraries: allowed
# stopped by: verdict VIOLATION: left work running
# stopped by: verdict TIME_LIMIT
# tries: to leave the device busy after each call, so that its clock stays high, and not to wait for
#   that.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

cuda, side = torch.cuda, []
spin = getattr(cuda, "_sl" + "eep")
cuda.synchronize = lambda device=None: cuda.current_stream().synchronize()


def forward(A, B, N):
    if not side:
        side.append(cuda.Stream())
    with cuda.stream(side[0]):
        spin(2_000_000_000)
    return A + B
