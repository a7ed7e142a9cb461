# task: vector_add
# workloads: cpu_n262144
# mode: ranked
# does: to call a library of its own by ctypes, which it has compiled as an extension.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
extern "C" void add(const float* a, const float* b, float* c, long n) {
  for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_add", "", -1, nullptr};
PyMODINIT_FUNC PyInit_own_add() { return PyModule_Create(&module); }
"""
own = load_inline("own_add", SOURCE, no_implicit_headers=True, extra_cflags=["-O2"])
library = ctypes.CDLL(own.__file__)


def forward(A, B, N):
    out = torch.empty_like(A)
    library.add(*(ctypes.c_void_p(t.data_ptr()) for t in (A, B, out)), ctypes.c_long(N))
    return out
