# row: 56, 8
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: construction
# stopped by: verdict RUNTIME_ERROR
# stopped by: verdict VIOLATION
# stopped by: verdict WRONG_RESULT
# must not print: GOT
# tries: to empty, shorten and unmap the pocket, and to leave the supervisor without it.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os

import torch

from tests.adversarial.common.inside import runner

ctypes = torch.ctypes
libc, word = ctypes.CDLL(None, use_errno=True), ctypes.c_size_t
KEEP_SIZE, PUNCH_HOLE, REMOVE, MEMORY = 1, 2, 9, 2 << 20


def pockets():
    """Its descriptors."""
    files = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    return [int(f[14:]) for f in files if os.path.lexists(f) and "kbench-pocket" in os.readlink(f)]


def forward(A, B, N):
    out = A + B
    for pocket in pockets():
        status = libc.ftruncate(pocket, word(0)), libc.ftruncate(pocket, word(2 * MEMORY))
        print("GOT another size" if 0 in status else "its size is sealed", flush=True)
        libc.fallocate(pocket, KEEP_SIZE | PUNCH_HOLE, word(0), word(MEMORY))
    inputs = runner()._arenas.inputs
    for place in (inputs.whole(), inputs._own):
        libc.madvise(word(place.data_ptr()), word(MEMORY), REMOVE)
    return out
