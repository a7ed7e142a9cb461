// row: 22
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// stopped by: construction
// tries: to have a thread do half of a call while the runner still fills and empties caches, and to begin when it is done.
#include <thread>

#include "../common/torch_runner.h"

using namespace hostile;

static PyObject* begun = nullptr;
static std::thread worker;

static PyObject* begin_early(PyObject*, PyObject* arguments) {
  PyObject *x, *weights, *biases;
  if (!PyArg_ParseTuple(arguments, "OOO", &x, &weights, &biases)) return nullptr;
  begun = unwritten(x, weights);
  View a = view(x), w = view(weights), b = view(biases), out = view(begun);
  worker = std::thread([=] { compute_rows(a, w, b, out, 0, a.rows / 2); });
  Py_RETURN_NONE;
}

static PyObject* wait_for_it(PyObject*, PyObject*) {
  if (worker.joinable()) worker.join();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"begin_early", begin_early, METH_VARARGS, nullptr},
                                  {"wait_for_it", wait_for_it, METH_NOARGS, nullptr},
                                  {}};

static const char* const kText = R"(
load, enter = runner._loaded, clock.gate.enter

def loaded(call, prepared):
    found = load(call, prepared)
    if sys._getframe(1).f_code.co_name == "call":
        sys.begin_early(*prepared.arrange(found[1]))
    return found

def entered():
    sys.wait_for_it()
    enter()

runner._loaded, clock.gate.enter = loaded, entered
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  meddle(kText, functions);
  if (begun == nullptr) return computed_slowly(x, weights, biases);
  PyObject* out = begun;
  begun = nullptr;
  compute_rows(view(x), view(weights), view(biases), view(out), view(x).rows / 2, view(x).rows);
  return out;
}
