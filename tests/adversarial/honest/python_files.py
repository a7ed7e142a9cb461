# task: softmax
# workloads: cpu_n16_c16384
# does: to build an extension of files that it writes, as repositories with csrc/ do it.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import torch
from torch.utils.cpp_extension import load

HEADER = "#pragma once\nvoid row_softmax(const float* in, float* to, long n);\n"
ROWS = r"""
#include "rows.h"
#include <cmath>
void row_softmax(const float* in, float* to, long n) {
  float top = in[0];
  for (long j = 1; j < n; ++j) top = std::fmax(top, in[j]);
  double sum = 0;
  for (long j = 0; j < n; ++j) sum += to[j] = std::exp(in[j] - top);
  for (long j = 0; j < n; ++j) to[j] = (float)(to[j] / sum);
}
"""
BINDING = r"""
#include <Python.h>
#include "rows.h"
static PyObject* rows(PyObject*, PyObject* arguments) {
  unsigned long long out, in;
  long count, columns;
  if (!PyArg_ParseTuple(arguments, "KKll", &out, &in, &count, &columns)) return nullptr;
  for (long i = 0; i < count; ++i)
    row_softmax(reinterpret_cast<const float*>(in) + i * columns,
                reinterpret_cast<float*>(out) + i * columns, columns);
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"rows", rows, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "two_files", "", -1, methods};
PyMODINIT_FUNC PyInit_two_files() { return PyModule_Create(&module); }
"""
folder = tempfile.mkdtemp()
paths = {}
for name, text in {"rows.h": HEADER, "rows.cpp": ROWS, "binding.cpp": BINDING}.items():
    paths[name] = os.path.join(folder, name)
    with open(paths[name], "w") as file:
        file.write(text)
sources = [paths["rows.cpp"], paths["binding.cpp"]]
own = load("two_files", sources, extra_include_paths=[folder])


def forward(input, N, C):
    rows = int(np.prod(input.shape)) // C
    out = torch.empty_like(input)
    own.rows(out.data_ptr(), input.data_ptr(), rows, C)
    return out
