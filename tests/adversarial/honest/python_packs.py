# task: matrix_mul
# workloads: cpu_m256_n256_k256
# does: to pack its operands by torch.cat, torch.stack and copies before loops of its own.

"""An honest kernel: the comment above says what it does."""

from __future__ import annotations

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
static PyObject* product(PyObject*, PyObject* arguments) {
  unsigned long long a, b, c;
  long m, n, k;
  if (!PyArg_ParseTuple(arguments, "KKKlll", &a, &b, &c, &m, &n, &k)) return nullptr;
  const float* x = reinterpret_cast<const float*>(a);
  const float* y = reinterpret_cast<const float*>(b);
  float* z = reinterpret_cast<float*>(c);
#pragma omp parallel for
  for (long i = 0; i < m; ++i)
    for (long l = 0; l < k; ++l)
      for (long j = 0; j < n; ++j) z[i * n + j] += x[i * k + l] * y[l * n + j];
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"product", product, METH_VARARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "own_product", "", -1, methods};
PyMODINIT_FUNC PyInit_own_product() { return PyModule_Create(&module); }
"""
FLAGS = ["-O3", "-march=native", "-fopenmp"]
own = load_inline("own_product", SOURCE, no_implicit_headers=True, extra_cflags=FLAGS)


def forward(A, B, M, N, K):
    packed = torch.cat([A, torch.zeros(M, 8)], 1).contiguous()
    padded = torch.stack([B, B])[0].clone()
    padded = torch.cat([padded, torch.empty(8, N).fill_(0.0)]).reshape(K + 8, N)
    C = torch.zeros(M, N)
    own.product(packed.data_ptr(), padded.data_ptr(), C.data_ptr(), M, N, K + 8)
    return C
