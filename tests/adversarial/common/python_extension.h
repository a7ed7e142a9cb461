// A torch extension without torch's headers: it builds in a second. The file that includes this
// defines `forward` over the Python objects of linear_relu's arguments.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases);

namespace hostile {

struct View {
  float* data;
  long rows, columns;
};

static long whole(PyObject* value) {
  long result = value != nullptr ? PyLong_AsLong(value) : 0;
  Py_XDECREF(value);
  return result;
}

static View view(PyObject* tensor) {
  auto address = PyObject_CallMethod(tensor, "data_ptr", nullptr);
  View view{static_cast<float*>(PyLong_AsVoidPtr(address)), 1, 0};
  Py_XDECREF(address);
  long dimensions = whole(PyObject_CallMethod(tensor, "dim", nullptr));
  view.columns = whole(PyObject_CallMethod(tensor, "size", "i", int(dimensions - 1)));
  if (dimensions == 2) view.rows = whole(PyObject_CallMethod(tensor, "size", "i", 0));
  return view;
}

// A new tensor of the result's shape, with whatever its memory holds.
static PyObject* unwritten(PyObject* x, PyObject* weights) {
  return PyObject_CallMethod(x, "new_empty", "((ll))", view(x).rows, view(weights).rows);
}

// The honest work: max(x @ weights^T + biases, 0).
static void compute(View x, View w, View b, View out) {
  for (long i = 0; i < x.rows; ++i)
    for (long o = 0; o < w.rows; ++o) {
      float sum = 0;
      for (long k = 0; k < x.columns; ++k) sum += x.data[i * x.columns + k] * w.data[o * w.columns + k];
      sum += b.data[o];
      out.data[i * w.rows + o] = sum > 0 ? sum : 0;
    }
}

static PyObject* computed(PyObject* x, PyObject* weights, PyObject* biases) {
  PyObject* out = unwritten(x, weights);
  if (out != nullptr) compute(view(x), view(weights), view(biases), view(out));
  return out;
}

// Runs Python text with the names of the call's objects; `result` is what the text leaves there.
static PyObject* python(const char* text, PyObject* x, PyObject* weights, PyObject* biases,
                        PyObject* out) {
  static PyObject* names = PyDict_New();
  PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins());
  PyDict_SetItemString(names, "x", x);
  PyDict_SetItemString(names, "weights", weights);
  PyDict_SetItemString(names, "biases", biases);
  PyDict_SetItemString(names, "out", out != nullptr ? out : Py_None);
  PyObject* done = PyRun_String(text, Py_file_input, names, names);
  if (done == nullptr) return nullptr;
  Py_DECREF(done);
  PyObject* result = PyDict_GetItemString(names, "out");
  Py_XINCREF(result);
  return result;
}

static PyObject* entry(PyObject*, PyObject* arguments) {
  PyObject *x, *weights, *biases;
  if (!PyArg_ParseTuple(arguments, "OOO", &x, &weights, &biases)) return nullptr;
  return forward(x, weights, biases);
}

static PyMethodDef methods[] = {{"forward", entry, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "kbench_kernel", nullptr, -1, methods,
                             nullptr, nullptr, nullptr, nullptr};

}  // namespace hostile

PyMODINIT_FUNC PyInit_kbench_kernel() { return PyModule_Create(&hostile::module); }
