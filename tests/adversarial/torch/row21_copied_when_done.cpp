// row: 21
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// stopped by: construction
// tries: to leave half of a call to a thread, for which the runner waits before it copies the result.
#include <thread>

#include "../common/torch_runner.h"

using namespace hostile;

static std::thread worker;

static PyObject* wait_for_it(PyObject*, PyObject*) {
  if (worker.joinable()) worker.join();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"wait_for_it", wait_for_it, METH_NOARGS, nullptr}, {}};

static const char* const kText = R"(
copy_out = module.copy_out

def late(*arguments):
    sys.wait_for_it()
    copy_out(*arguments)

module.copy_out = late
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  meddle(kText, functions);
  PyObject* out = unwritten(x, weights);
  View a = view(x), w = view(weights), b = view(biases), to = view(out);
  wait_for_it(nullptr, nullptr);  // of the call before, in a burst
  worker = std::thread([=] { compute_rows(a, w, b, to, a.rows / 2, a.rows); });
  compute_rows(a, w, b, to, 0, a.rows / 2);
  return out;
}
