// row: 1, 2
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: test
// stopped by: verdict WRONG_RESULT: wrong
// tries: to hand out a new tensor unwritten, whose memory may have been the reference's output.
#include "../common/python_extension.h"

static PyObject* forward(PyObject* x, PyObject* weights, PyObject*) {
  return hostile::unwritten(x, weights);
}
