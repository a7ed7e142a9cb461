// row: 27
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to move the start of the clock by half of the call, in the memory of the number that Python holds it in.
#include "../common/control.h"
#include "../common/python_extension.h"

static const char* const kText = R"(
import sys

frame = sys._getframe()
while frame is not None and frame.f_code.co_name != "_ns":
    frame = frame.f_back
out = None if frame is None else frame.f_locals["start"]
)";

// A number of Python's has digits of 30 bits behind three words.
static void later(PyObject* number, uint64_t by) {
  auto digits = reinterpret_cast<uint32_t*>(number) + 6;
  uint64_t value = digits[0] + (uint64_t(digits[1]) << 30) + by;
  digits[0] = value & ((1u << 30) - 1);
  digits[1] = uint32_t(value >> 30);
}

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  uint64_t began = hostile::now_ns();
  PyObject* out = hostile::computed(x, weights, biases);
  PyObject* start = hostile::python(kText, x, weights, biases, nullptr);
  if (start == nullptr) return nullptr;
  if (start != Py_None) later(start, (hostile::now_ns() - began) / 2);
  Py_DECREF(start);
  return out;
}
