// row: 7, 17, 42
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: test
// stopped by: construction
// must not print: GOT
// tries: to find outputs, seeds and the mode in the interpreter, and to guess or choose the inputs.
#include "../common/python_extension.h"

static const char* const kText = R"(
import builtins, gc, sys, torch

def secrets(names, where):
    for word in ("seed", "seeds", "expected", "tolerance", "mode", "hidden", "verified"):
        value = names.get(word) if isinstance(names, dict) else None
        if isinstance(value, (int, float, str, list, tuple, torch.Tensor)):
            print("GOT", word, "in", where, flush=True)

def walk():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name not in ("walk", "secrets"):
            secrets(frame.f_locals, "a frame of " + frame.f_code.co_name)
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing) is torch.Tensor and thing is not out and thing.shape == out.shape:
            if thing.data_ptr() != out.data_ptr() and torch.allclose(thing.float(), out, 1e-3):
                print("GOT an output that somebody else has computed", flush=True)
    if set(sys.argv) & {"test", "quick", "ranked", "audit"}:
        print("GOT the mode in the command line", flush=True)

def guess():
    for seed in (*range(32), 42, 123, 200, 1234, 1337, 2024, 2025, 3407):
        torch.manual_seed(seed)
        if torch.equal(torch.rand_like(weights) * 2 - 1, weights * (weights.shape[1] / 3) ** 0.5):
            print("GOT the seed", seed, flush=True)

state = builtins.__dict__.setdefault("_kbench_state", {})
if "chosen" in state and torch.allclose(state["chosen"], weights):
    print("GOT inputs of my choice", flush=True)
if not state:
    walk()
    guess()
torch.manual_seed(42)
state["chosen"] = (torch.rand_like(weights) * 2 - 1) * (3 / weights.shape[1]) ** 0.5
torch.manual_seed(42)
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  PyObject* out = hostile::computed(x, weights, biases);
  return hostile::python(kText, x, weights, biases, out);
}
