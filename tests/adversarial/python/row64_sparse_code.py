# row: 64, 56
# task: vector_add
# workloads: cpu_n16384
# stopped by: quarantine loaded
# tries: to map empty files as code, of any size for nothing, so that the supervisor fills its own
#   memory with them when it looks at who does the work.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import mmap
import os
import tempfile

import torch

MANY, SIZE, CODE = 40, 60 << 20, mmap.PROT_READ | mmap.PROT_EXEC
kept = []
for number in range(MANY):
    with open(os.path.join(tempfile.gettempdir(), f"code{number}"), "w+b") as file:
        file.truncate(SIZE)
        kept.append(mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_PRIVATE, CODE))


def forward(A, B, N):
    return torch.add(A, B)
