# task: vector_add
# workloads: cpu_n1024
# does: so little that everything around it takes longer.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
static PyObject* add(PyObject*, PyObject* arguments) {
  unsigned long long a, b, c;
  long n;
  if (!PyArg_ParseTuple(arguments, "KKKl", &a, &b, &c, &n)) return nullptr;
  const float* x = reinterpret_cast<const float*>(a);
  const float* y = reinterpret_cast<const float*>(b);
  float* z = reinterpret_cast<float*>(c);
  for (long i = 0; i < n; ++i) z[i] = x[i] + y[i];
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"add", add, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_add", "", -1, methods};
PyMODINIT_FUNC PyInit_own_add() { return PyModule_Create(&module); }
"""
own = load_inline("own_add", SOURCE, no_implicit_headers=True, extra_cflags=["-O3"])


def forward(A, B, N):
    out = torch.zeros_like(A).clone().contiguous().reshape(N)
    own.add(A.data_ptr(), B.data_ptr(), out.data_ptr(), N)
    return out
