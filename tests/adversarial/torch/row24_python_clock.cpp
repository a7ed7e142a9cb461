// row: 24, 25
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to give the runner's Python a clock at 50 %, by every name under which it may be known.
#include "../common/python_extension.h"

static const char* const kText = R"(
import builtins, gc, time

if not hasattr(builtins, "_kbench_slow"):
    builtins._kbench_slow = True
    true_time, base = time.perf_counter_ns, time.perf_counter_ns()
    time.perf_counter_ns = time.monotonic_ns = lambda: base + (true_time() - base) * 5 // 10

    def patched(call):
        def told(*arguments):
            result, time_ns, *more = call(*arguments)
            return (result, time_ns * 0.9, *more)
        return told

    for thing in gc.get_objects():
        if type(thing).__name__ == "CpuClock":
            thing.call = patched(thing.call)
            break
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  return hostile::python(kText, x, weights, biases, hostile::computed(x, weights, biases));
}
