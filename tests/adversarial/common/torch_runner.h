// What an extension finds of the torch runner around it, and how it lets C++ be called from there.
#include <initializer_list>

#include "../common/python_extension.h"

namespace hostile {

static const char* const kFind = R"(
import sys

def around(kind):
    frame = sys._getframe()
    while frame is not None:
        thing = frame.f_locals.get("self")
        if type(thing).__name__ == kind:
            return thing
        frame = frame.f_back

runner = around("Runner")
clock = runner._clock
module = sys.modules[type(runner).__module__]
)";

// Once, from within a call: runs Python text that knows `clock`, `runner`, its `module`, and these
// functions as attributes of `sys`.
static void meddle(const char* text, PyMethodDef* functions = nullptr) {
  static bool done = false;
  if (done) return;
  done = true;
  for (; functions != nullptr && functions->ml_name != nullptr; ++functions) {
    PyObject* function = PyCFunction_New(functions, nullptr);
    PySys_SetObject(functions->ml_name, function);
    Py_XDECREF(function);
  }
  for (const char* part : {kFind, text}) {
    PyObject* result = python(part, Py_None, Py_None, Py_None, nullptr);
    if (result == nullptr) PyErr_Print();
    Py_XDECREF(result);
  }
}

// A part of the honest work: some rows of the result. Twice, so that half of it is well above what
// an honest extension's beginning may differ by.
static void compute_rows(View x, View w, View b, View out, long from, long to) {
  View some{x.data + from * x.columns, to - from, x.columns};
  for (int again = 0; again < 2; ++again) {
    compute(some, w, b, {out.data + from * w.rows, to - from, w.rows});
    asm volatile("" ::: "memory");
  }
}

static PyObject* computed_slowly(PyObject* x, PyObject* weights, PyObject* biases) {
  PyObject* out = unwritten(x, weights);
  View a = view(x);
  compute_rows(a, view(weights), view(biases), view(out), 0, a.rows);
  return out;
}

}  // namespace hostile
