// row: 22
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to do half of a call between the open gate and the start of the runner's clock, in a function of the runner that it replaces.
#include "../common/torch_runner.h"

using namespace hostile;

static PyObject* begun = nullptr;

static PyObject* begin_early(PyObject*, PyObject* arguments) {
  PyObject *x, *weights, *biases;
  if (!PyArg_ParseTuple(arguments, "OOO", &x, &weights, &biases)) return nullptr;
  begun = unwritten(x, weights);
  compute_rows(view(x), view(weights), view(biases), view(begun), 0, view(x).rows / 2);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"begin_early", begin_early, METH_VARARGS, nullptr}, {}};

static const char* const kText = R"(
import time

gate = runner._gate

def early(number, coming, meanwhile, function, arguments):
    gate.wait(number, coming, meanwhile)
    sys.begin_early(*arguments)
    began = time.perf_counter_ns()
    result = function(*arguments)
    time_ns = time.perf_counter_ns() - began
    gate.leave(number, result)
    return result, time_ns

gate.call = early
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  meddle(kText, functions);
  if (begun == nullptr) return computed_slowly(x, weights, biases);
  PyObject* out = begun;
  begun = nullptr;
  compute_rows(view(x), view(weights), view(biases), view(out), view(x).rows / 2, view(x).rows);
  return out;
}
