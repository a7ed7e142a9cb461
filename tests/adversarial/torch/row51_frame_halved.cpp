// row: 51
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to change each time to a half in the frame, as the socket is written to.
#include "../common/control.h"
#include "../common/patch.h"
#include "../common/python_extension.h"

static ssize_t sending(int fd, const void* data, size_t size, int flags) {
  hostile::Done done;
  char frame[4096];
  if (size < sizeof done || size > sizeof frame) return sendto(fd, data, size, flags, nullptr, 0);
  memcpy(frame, data, size);
  memcpy(&done, frame, sizeof done);
  if (done.header.magic == hostile::kMagic && done.header.kind == hostile::kDone &&
      done.time_ns > 1)  // bursts have no time
    done.time_ns /= 2;
  memcpy(frame, &done, sizeof done);
  return sendto(fd, frame, size, flags, nullptr, 0);
}

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  static int patched = hostile::patch_imports("send", reinterpret_cast<void*>(sending));
  if (patched == 0) PyErr_SetString(PyExc_RuntimeError, "nobody imports what sends");
  return patched == 0 ? nullptr : hostile::computed(x, weights, biases);
}
