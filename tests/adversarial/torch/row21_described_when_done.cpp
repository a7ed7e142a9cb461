// row: 21
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// stopped by: verdict VIOLATION: after it said
// tries: to leave half of a call to a thread, for which the runner waits before it describes the result; processor time sees it.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "../common/torch_runner.h"

using namespace hostile;

static std::thread worker;
static std::atomic<bool> is_over{false};

static PyObject* wait_for_it(PyObject*, PyObject*) {
  is_over = true;
  if (worker.joinable()) worker.join();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"wait_for_it", wait_for_it, METH_NOARGS, nullptr}, {}};

static const char* const kText = R"(
describe = module.record_of

def late(tensor):
    sys.wait_for_it()
    return describe(tensor)

module.record_of = late
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  meddle(kText, functions);
  PyObject* out = unwritten(x, weights);
  View a = view(x), w = view(weights), b = view(biases), to = view(out);
  is_over = false;
  worker = std::thread([=] {
    while (!is_over) usleep(100);
    compute_rows(a, w, b, to, a.rows / 2, a.rows);
  });
  compute_rows(a, w, b, to, 0, a.rows / 2);
  return out;
}
