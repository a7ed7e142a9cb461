# row: 73, 40, 41
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to write the sum over an input, by the pocket's writable mapping, and to return that input.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import runner


def forward(A, B, N):
    inputs = runner()._arenas.inputs
    own, at = inputs._own, A.data_ptr() - inputs.whole().data_ptr()
    torch.add(A, B, out=own[at : at + A.nbytes].view(torch.float32))
    return A
