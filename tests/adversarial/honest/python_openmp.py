# task: softmax
# workloads: cpu_n64_c1024
# mode: ranked
# does: to share its rows among threads of OpenMP, in C++ of its own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
#include <cmath>

static PyObject* softmax(PyObject*, PyObject* arguments) {
  unsigned long long out, in;
  long rows, columns;
  if (!PyArg_ParseTuple(arguments, "KKll", &out, &in, &rows, &columns)) return nullptr;
#pragma omp parallel for schedule(dynamic)
  for (long r = 0; r < rows; ++r) {
    const float* x = reinterpret_cast<const float*>(in) + r * columns;
    float* y = reinterpret_cast<float*>(out) + r * columns;
    float largest = x[0], sum = 0.0f;
    for (long c = 1; c < columns; ++c) largest = x[c] > largest ? x[c] : largest;
    for (long c = 0; c < columns; ++c) sum += y[c] = std::exp(x[c] - largest);
    for (long c = 0; c < columns; ++c) y[c] /= sum;
  }
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"softmax", softmax, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_softmax", "", -1, methods};
PyMODINIT_FUNC PyInit_own_softmax() { return PyModule_Create(&module); }
"""
own = load_inline("own_softmax", SOURCE, no_implicit_headers=True, extra_cflags=["-O2", "-fopenmp"])


def forward(input, N, C):
    out = torch.empty_like(input)
    own.softmax(out.data_ptr(), input.data_ptr(), N, C)
    return out
