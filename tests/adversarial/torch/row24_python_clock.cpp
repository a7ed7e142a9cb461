// row: 24, 25
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to give the runner's Python a clock at 50 %, by every name under which it may be known.
#include "../common/torch_runner.h"

static const char* const kText = R"(
import time

true_time, base, net = time.perf_counter_ns, time.perf_counter_ns(), clock.net_ns
time.perf_counter_ns = time.monotonic_ns = lambda: base + (true_time() - base) // 2
clock.net_ns = lambda time_ns: net(time_ns) / 2
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  hostile::meddle(kText);
  return hostile::computed(x, weights, biases);
}
