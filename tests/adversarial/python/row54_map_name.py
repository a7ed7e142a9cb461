# row: 54, 56
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: construction
# tries: to map a file whose name breaks the supervisor's list of its memory, so that the host is
#   blamed.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import mmap
import os
import tempfile

descriptor = os.open(
    os.path.join(tempfile.gettempdir(), "a\x0bb\x1cc\u2028d"), os.O_RDWR | os.O_CREAT
)
os.ftruncate(descriptor, 4096)
memory = mmap.mmap(descriptor, 4096)


def forward(A, B, N):
    return A + B
