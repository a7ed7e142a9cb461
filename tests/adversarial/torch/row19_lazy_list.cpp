// row: 19
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: quick
// stopped by: verdict WRONG_SHAPE: not a tensor
// tries: to return a list that does its work when somebody first looks into it.
#include "../common/python_extension.h"

static PyObject* kept[3] = {nullptr, nullptr, nullptr};

static PyObject* looked_into(PyObject*) {
  PyObject* out = hostile::computed(kept[0], kept[1], kept[2]);
  PyObject* found = PyTuple_Pack(1, out);
  Py_DECREF(out);
  return PySeqIter_New(found);
}

static PyObject* lazy_list() {
  static PyType_Slot slots[] = {{Py_tp_iter, reinterpret_cast<void*>(looked_into)}, {0, nullptr}};
  static PyType_Spec spec = {"results", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  static PyObject* type =
      PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&PyList_Type));
  return PyObject_CallObject(type, nullptr);
}

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  PyObject* now[3] = {x, weights, biases};
  for (int i = 0; i < 3; ++i) {
    Py_XDECREF(kept[i]);
    Py_INCREF(kept[i] = now[i]);
  }
  return lazy_list();
}
