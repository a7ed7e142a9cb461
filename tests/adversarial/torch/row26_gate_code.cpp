// row: 26, 53
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: test
// stopped by: verdict VIOLATION
// stopped by: verdict WRONG_RESULT: wrong
// stopped by: verdict TIME_LIMIT
// tries: to write over the code that passes the gate, so that it is always open.
#include "../common/pass_code.h"
#include "../common/python_extension.h"

static PyObject* always_open(hostile::Page* page, uint64_t number, const void*, PyObject*,
                             const void*, PyObject* function, PyObject* arguments,
                             uint64_t* time_ns, int* status) {
  *status = 0;
  *time_ns = 1000;
  hostile::Page& words = *page;
  words[hostile::kReady] = number;
  words[hostile::kRounds] += 100;
  PyObject* result = PyObject_Call(function, arguments, nullptr);
  words[hostile::kOver] = number;
  return result;
}

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  static bool once = hostile::pass_by(reinterpret_cast<void*>(always_open));
  if (!once) PyErr_SetString(PyExc_RuntimeError, "there is no such code");
  return once ? hostile::computed(x, weights, biases) : nullptr;
}
