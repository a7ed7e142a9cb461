# row: 41, 73, 21
# task: matrix_copy
# workloads: cpu_m512_n512
# mode: ranked
# libraries: allowed
# stopped by: verdict VIOLATION: returned file-backed or shared memory
# at least: 40000 ns
# tries: to return its input's memory as the copy, and to put a real copy in its place once the call
#   is over.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.inside import engine, module

ctypes, PAGE = torch.ctypes, 4096
libc, word = ctypes.CDLL(None), ctypes.c_size_t
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
MOVE, FIXED, POPULATED = 1, 2, 0x8022
passage, swaps = engine("passage").Passage, []
true_call = getattr(passage, "call", None)


def call(self, *words):
    told = true_call(self, *words)
    for A, begin, size, spare, twin in swaps:
        libc.memmove(word(spare + A.data_ptr() - begin), word(A.data_ptr()), word(A.nbytes))
        libc.mremap(word(spare), word(size), word(size), MOVE | FIXED, word(twin))
    swaps.clear()
    return told


passage.call = call


def forward(A, M, N):
    if not module("gpu_runner.engine.runner.runner"):
        return A, A.clone()
    begin = A.data_ptr() // PAGE * PAGE
    size = -(-(A.data_ptr() + A.nbytes - begin) // PAGE) * PAGE
    spare = libc.mmap(None, word(size), 3, POPULATED, -1, word(0))
    twin = libc.mremap(word(begin), word(0), word(size), MOVE)
    swaps.append((A, begin, size, spare, twin))
    numbers = (ctypes.c_float * A.numel()).from_address(twin + A.data_ptr() - begin)
    return A, torch.frombuffer(numbers, dtype=torch.float32).view(A.shape)
