// row: 26
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to give Python a clock at 50 % through the tables of imports of its libraries.
#include <time.h>

#include "../common/patch.h"
#include "../common/python_extension.h"

static int slow_clock(clockid_t clock, timespec* now) {
  static long base = 0;
  int status = clock_gettime(clock, now);
  if (clock != CLOCK_MONOTONIC) return status;
  long ns = now->tv_sec * 1000000000L + now->tv_nsec;
  if (base == 0) base = ns;
  ns = base + (ns - base) / 2;
  now->tv_sec = ns / 1000000000L;
  now->tv_nsec = ns % 1000000000L;
  return status;
}

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  static int patched = hostile::patch_imports("clock_gettime", reinterpret_cast<void*>(slow_clock));
  if (patched == 0) PyErr_SetString(PyExc_RuntimeError, "nobody imports the clock");
  return patched == 0 ? nullptr : hostile::computed(x, weights, biases);
}
