# task: dot_product
# workloads: cpu_n65536
# does: to store vectors in 16 bits too, by conversions that another library has for the framework,
#   beside sums in C++ of its own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
static PyObject* dot(PyObject*, PyObject* arguments) {
  unsigned long long a, b, c;
  long n;
  if (!PyArg_ParseTuple(arguments, "KKKl", &a, &b, &c, &n)) return nullptr;
  const float* x = reinterpret_cast<const float*>(a);
  const float* y = reinterpret_cast<const float*>(b);
  double sum = 0.0;
  for (long i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * y[i];
  *reinterpret_cast<float*>(c) = static_cast<float>(sum);
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"dot", dot, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_dot", "", -1, methods};
PyMODINIT_FUNC PyInit_own_dot() { return PyModule_Create(&module); }
"""
own = load_inline("own_dot", SOURCE, no_implicit_headers=True, extra_cflags=["-O1"])
kept = {}


def forward(X, Y, N):
    kept["last"] = X.to(torch.float16), Y.to(torch.bfloat16)
    out = torch.empty(1)
    own.dot(X.data_ptr(), Y.data_ptr(), out.data_ptr(), N)
    return out
