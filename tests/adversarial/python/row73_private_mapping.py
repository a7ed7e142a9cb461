# row: 73, 41
# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to map its pocket once more, as a private copy that is made only when somebody writes, and
#   to return that memory as an output.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import mmap
import os

import torch

from tests.adversarial.common.inside import runner

maps = {}


def mapped():
    """The file of the pocket, from the table of descriptors, somewhere else."""
    files = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    file = next(f for f in files if os.path.lexists(f) and "kbench-pocket" in os.readlink(f))
    descriptor = os.open(file, os.O_RDONLY)
    maps["memory"] = mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)


def forward(A, M, N):
    if not maps:
        mapped()
    at = A.data_ptr() - runner()._arenas.inputs.whole().data_ptr()
    flat = torch.frombuffer(maps["memory"], dtype=torch.float32, count=M * N, offset=at)
    return A, flat.view(M, N)
