// row: 21, 53
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// stopped by: verdict VIOLATION: after it said
// tries: to write on the page of the gate that the call is over as it begins, and to tell 2 us; processor time sees it.
#include "../common/gate_page.h"
#include "../common/torch_runner.h"

using namespace hostile;

static const char* const kText = R"(
import dataclasses

pack = module.pack_done
module.pack_done = lambda done: pack(dataclasses.replace(done, time_ns=2000.0))
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  meddle(kText);
  if (auto page = gate_page()) page[kOver] = page[kReady].load();
  return computed_slowly(x, weights, biases);
}
