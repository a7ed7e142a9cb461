# row: 1
# task: vector_add
# workloads: cpu_n16384
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: cannot be read
# tries: to return a tensor whose memory it gives back to the system.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

libc, ctypes = torch.ctypes.CDLL(None), torch.ctypes
libc.mmap.restype = ctypes.c_void_p


def forward(A, B, N):
    size = ctypes.c_size_t(A.nbytes)
    at = libc.mmap(None, size, 3, 0x22, -1, ctypes.c_long(0))
    out = torch.frombuffer((ctypes.c_float * N).from_address(at), dtype=torch.float32)
    torch.add(A, B, out=out)
    libc.munmap(ctypes.c_void_p(at), size)
    return out
