# row: 22, 12, 56
# task: vector_add
# workloads: cpu_n16384
# mode: ranked
# libraries: allowed
# stopped by: verdict WRONG_RESULT: wrong
# at least: 1500000 ns
# tries: to map memory of its own over the pocket, so that it finds the inputs of an earlier call,
#   whose result it has.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch

from tests.adversarial.common.busy import add
from tests.adversarial.common.inside import engine, runner

ctypes, kept = torch.ctypes, {}
libc, word = ctypes.CDLL(None), ctypes.c_size_t
libc.mmap.restype = ctypes.c_void_p
FIXED_OWN, MEMORY = 0x32, 2 << 20


def forward(A, B, N):
    if "out" not in kept:
        kept["out"] = add(A, B)
        place = runner()._arenas.inputs.whole()
        inputs = place[:MEMORY].clone()
        at = libc.mmap(word(place.data_ptr()), word(MEMORY), 3, FIXED_OWN, -1, word(0))
        ctypes.memmove(at, inputs.data_ptr(), MEMORY)
    return kept["out"].clone()


engine("passage")
