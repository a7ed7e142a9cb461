// row: 22
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to have sixteen threads that mostly wait do half of a call before the gate opens, the half that needs no inputs; their time is added up.
#include "../common/early_pool.h"

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  return hostile::computed_by_half(x, weights, biases, 16);
}
