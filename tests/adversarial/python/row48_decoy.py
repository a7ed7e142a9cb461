# row: 48
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to have a kernel of its own do a small part, and the framework the rest.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import operator

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
static PyObject* rows(PyObject*, PyObject* arguments) {
  unsigned long long a, b, c;
  long m, n, k;
  if (!PyArg_ParseTuple(arguments, "KKKlll", &a, &b, &c, &m, &n, &k)) return nullptr;
  const float* x = reinterpret_cast<const float*>(a);
  const float* y = reinterpret_cast<const float*>(b);
  float* z = reinterpret_cast<float*>(c);
  for (long i = 0; i < m; ++i)
    for (long l = 0; l < k; ++l)
      for (long j = 0; j < n; ++j) z[i * n + j] += x[i * k + l] * y[l * n + j];
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"rows", rows, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "decoy", "", -1, methods};
PyMODINIT_FUNC PyInit_decoy() { return PyModule_Create(&module); }
"""
own = load_inline("decoy", SOURCE, no_implicit_headers=True, extra_cflags=["-O3", "-march=native"])
MINE = 2


def forward(A, B, M, N, K):
    C = torch.zeros(M, N)
    own.rows(A.data_ptr(), B.data_ptr(), C.data_ptr(), MINE, N, K)
    C[MINE:] = operator.matmul(A[MINE:], B)
    return C
