// row: 22
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to have a resident thread do half of a call while the runner waits at the gate, the half that needs no inputs; processor time sees it.
#include "../common/early_pool.h"

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  return hostile::computed_by_half(x, weights, biases, 1);
}
