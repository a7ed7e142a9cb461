// row: 21
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: quick
// stopped by: verdict WRONG_RESULT: wrong
// stopped by: verdict RUNTIME_ERROR: read inputs out of bounds, or outside of the call
// stopped by: verdict VIOLATION: after it said
// stopped by: raised
// tries: to return at once while a thread of its own does the work.
#include <initializer_list>
#include <thread>

#include "../common/python_extension.h"

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  using namespace hostile;
  PyObject* out = unwritten(x, weights);
  for (PyObject* one : {x, weights, biases, out}) Py_INCREF(one);  // the thread may be late
  std::thread(compute, view(x), view(weights), view(biases), view(out)).detach();
  return out;
}
