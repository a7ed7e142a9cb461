# row: 73, 41
# task: matrix_copy
# workloads: cpu_m128_n512
# mode: test
# libraries: allowed
# stopped by: verdict VIOLATION: shares memory with an input
# tries: to double the mapping of the inputs by mremap, and to return the twin as an output.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

libc, PAGE = torch.ctypes.CDLL(None), 4096
libc.mremap.restype = torch.ctypes.c_void_p


def forward(A, M, N):
    begin = A.data_ptr() // PAGE * PAGE
    size = (A.data_ptr() + A.nbytes - begin + PAGE - 1) // PAGE * PAGE
    twin = libc.mremap(
        torch.ctypes.c_void_p(begin), torch.ctypes.c_size_t(0), torch.ctypes.c_size_t(size), 1
    )
    numbers = torch.ctypes.c_float * (M * N)
    memory = numbers.from_address(twin + A.data_ptr() - begin)
    return A, torch.frombuffer(memory, dtype=torch.float32).view(M, N)
