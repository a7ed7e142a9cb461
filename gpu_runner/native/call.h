// A Python call at the gate. From the moment the gate opens until the call is over, none of our own
// code runs in Python: a submission could replace it and use the time that it takes, unseen.
//
// We use only Python's stable interface, whose functions the interpreter itself exports. So this
// library is built without Python's headers. It runs only in processes of the same interpreter.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>

#include "flush.h"
#include "gate.h"
#include "handed.h"

struct _object;
using PyObject = _object;
using Py_ssize_t = ptrdiff_t;

extern "C" {
#define KB_PYTHON __attribute__((weak)) extern
KB_PYTHON PyObject* PyObject_Call(PyObject*, PyObject*, PyObject*);
KB_PYTHON PyObject* PyObject_CallFunctionObjArgs(PyObject*, ...);
KB_PYTHON PyObject* PyObject_Type(PyObject*);
KB_PYTHON PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);
KB_PYTHON Py_ssize_t PyTuple_Size(PyObject*);
KB_PYTHON PyObject* PyList_GetItem(PyObject*, Py_ssize_t);
KB_PYTHON Py_ssize_t PyList_Size(PyObject*);
KB_PYTHON int PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**);
KB_PYTHON unsigned long long PyLong_AsUnsignedLongLong(PyObject*);
KB_PYTHON void PyErr_Clear();
KB_PYTHON void Py_DecRef(PyObject*);
KB_PYTHON _object PyTuple_Type, PyList_Type, PyDict_Type;
#undef KB_PYTHON
}

// What to map when the gate opens; nothing if `size` is 0. See `kb_take_inputs`.
struct KbComing {
  int64_t handles;
  void* at;
  void* own;
  size_t size;
  const KbRange* ranges;
  size_t count, owned;
};

// How to find the memory in what a call returns: the types of tensors, and their method `data_ptr`.
struct KbTensors {
  PyObject *tensor, *parameter;
  PyObject* address;
};

static inline int kb_take(const KbComing& coming) {
  if (coming.size == 0) return 0;
  return kb_take_inputs(static_cast<int>(coming.handles), coming.at, coming.own, coming.size,
                        coming.ranges, coming.count, coming.owned);
}

// Chosen: a supervisor that is watching opens the gate within microseconds of a look.
constexpr uint64_t kKbStandNs = 20000;

// Waits at the gate until it opens for this call or burst, then takes the inputs. Meanwhile it
// calls `meanwhile` again and again, so that whatever is warm in a loop is warm for the call, too.
// Unless the supervisor is late, the gate doesn't open while `meanwhile` runs. Returns 0 or an
// errno, or -1 if `meanwhile` raised an exception.
KB_EXPORT int kb_gate_wait(KbGate* gate, uint64_t call, const KbComing* coming,
                           PyObject* meanwhile) {
  for (;;) {
    PyObject* done = PyObject_CallFunctionObjArgs(meanwhile, nullptr);
    if (done == nullptr) return -1;
    Py_DecRef(done);
    if (kb_gate_stand(gate, call, kKbStandNs)) return kb_take(*coming);
  }
}

static inline size_t kb_find(PyObject* value, const KbTensors& tensors, uint64_t* found,
                             size_t count) {
  PyObject* type = PyObject_Type(value);
  if (type == nullptr) return count;
  if (type == tensors.tensor || type == tensors.parameter) {
    PyObject* number = PyObject_CallFunctionObjArgs(tensors.address, value, nullptr);
    if (number != nullptr && count < kKbMostOutputs)
      found[count++] = PyLong_AsUnsignedLongLong(number);
    if (number != nullptr) Py_DecRef(number);
  } else if (type == &PyTuple_Type) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(value); ++i)
      count = kb_find(PyTuple_GetItem(value, i), tensors, found, count);
  } else if (type == &PyList_Type) {
    for (Py_ssize_t i = 0; i < PyList_Size(value); ++i)
      count = kb_find(PyList_GetItem(value, i), tensors, found, count);
  } else if (type == &PyDict_Type) {
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t i = 0; PyDict_Next(value, &i, &key, &item) != 0;)
      count = kb_find(item, tensors, found, count);
  }
  Py_DecRef(type);
  return count;
}

// Says where the outputs in a result are. If something in it isn't a tensor, the runner reports
// that later.
static inline void kb_tell(KbGate* gate, PyObject* result, const KbTensors& tensors) {
  uint64_t found[kKbMostOutputs];
  kb_gate_outputs(gate, found, kb_find(result, tensors, found, 0));
  PyErr_Clear();
}

// Called before a call, to keep this code warm; nobody reads these addresses until a call is over.
KB_EXPORT void kb_rehearse_outputs(KbGate* gate, PyObject* result, const KbTensors* tensors) {
  kb_tell(gate, result, *tensors);
}

// Makes the call, and says how long it took.
KB_EXPORT PyObject* kb_timed(PyObject* function, PyObject* arguments, uint64_t* time_ns) {
  uint64_t began = kb_now_ns();
  PyObject* result = PyObject_Call(function, arguments, nullptr);
  *time_ns = kb_now_ns() - began;
  return result;
}

// Says where the outputs are, and that the call is over.
KB_EXPORT void kb_gate_told(KbGate* gate, uint64_t call, const KbTensors* tensors,
                            PyObject* result) {
  kb_tell(gate, result, *tensors);
  kb_gate_leave(gate, call);
}

// Waits, takes the inputs, makes the call and leaves, without returning to Python in between.
// status: what `kb_gate_wait` returned.
KB_EXPORT PyObject* kb_gate_pass(KbGate* gate, uint64_t call, const KbComing* coming,
                                 PyObject* meanwhile, const KbTensors* tensors, PyObject* function,
                                 PyObject* arguments, uint64_t* time_ns, int* status) {
  *status = kb_gate_wait(gate, call, coming, meanwhile);
  if (*status == -1) return nullptr;
  if (*status != 0) return PyObject_CallFunctionObjArgs(meanwhile, nullptr);  // any object will do
  PyObject* result = kb_timed(function, arguments, time_ns);
  if (result != nullptr) kb_gate_told(gate, call, tensors, result);
  return result;
}
