// row: 53
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: quick
// stopped by: verdict VIOLATION: after it had said
// tries: to say that a call is over before it has begun, and to do its work as the result is copied.
#include "../common/torch_runner.h"

using namespace hostile;

static PyObject *kept[3] = {}, *promised = nullptr;

static PyObject* work_now(PyObject*, PyObject*) {
  if (promised != nullptr) compute(view(kept[0]), view(kept[1]), view(kept[2]), view(promised));
  promised = nullptr;
  Py_RETURN_NONE;
}

static PyObject* promise(PyObject*, PyObject* arguments) {
  if (!PyArg_ParseTuple(arguments, "OOO", &kept[0], &kept[1], &kept[2])) return nullptr;
  for (PyObject* one : kept) Py_INCREF(one);  // for good: there are few calls
  Py_XINCREF(promised = unwritten(kept[0], kept[1]));
  return promised;
}

static PyMethodDef functions[] = {{"work_now", work_now, METH_NOARGS, nullptr},
                                  {"promise", promise, METH_VARARGS, nullptr},
                                  {}};

static const char* const kText = R"(
timed, copy_out = clock.call, module.copy_out

def promised(*arguments):
    result = sys.promise(*arguments)
    clock.gate.leave()
    return result

def late(*arguments):
    sys.work_now()
    copy_out(*arguments)

clock.call = lambda function, arguments, head_start: timed(promised, arguments, head_start)
module.copy_out = late
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  meddle(kText, functions);
  return computed(x, weights, biases);
}
