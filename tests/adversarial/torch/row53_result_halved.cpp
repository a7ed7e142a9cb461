// row: 53
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to change each time to a half before the runner makes a frame of it.
#include "../common/torch_runner.h"

static const char* const kText = R"(
import dataclasses

pack = module.pack_done
module.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=max(1.0, done.time_ns / 2)))
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  hostile::meddle(kText);
  return hostile::computed(x, weights, biases);
}
