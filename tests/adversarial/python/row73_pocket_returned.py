# row: 73, 72
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to return memory of the pocket that no input of the call lies in, so that the supervisor
#   writes the next output itself.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import runner


def forward(A, B, N):
    behind = runner()._arenas.inputs._own[3 << 19 : (3 << 19) + A.nbytes].view(torch.float32)
    return torch.add(A, B, out=behind)
