# row: 45
# task: matrix_mul
# workloads: cpu_m256_n256_k256
# stopped by: quarantine work
# tries: to join the text of an extension that calls the framework's BLAS.

"""A hostile kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

PRODUCT = "sge" + "mm_"
SOURCE = r"""
#include <Python.h>
extern "C" void @(const char*, const char*, const int*, const int*, const int*, const float*,
                  const float*, const int*, const float*, const int*, const float*, float*,
                  const int*);
static PyObject* product(PyObject*, PyObject* arguments) {
  unsigned long long a, b, c;
  int m, n, k;
  if (!PyArg_ParseTuple(arguments, "KKKiii", &a, &b, &c, &m, &n, &k)) return nullptr;
  const float one = 1, zero = 0;
  @("n", "n", &n, &m, &k, &one, reinterpret_cast<float*>(b), &n, reinterpret_cast<float*>(a), &k,
    &zero, reinterpret_cast<float*>(c), &n);
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"product", product, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "joined", "", -1, methods};
PyMODINIT_FUNC PyInit_joined() { return PyModule_Create(&module); }
"""
own = load_inline("joined", SOURCE.replace("@", PRODUCT), no_implicit_headers=True)


def forward(A, B, M, N, K):
    C = torch.empty(M, N)
    own.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), M, N, K)
    return C
