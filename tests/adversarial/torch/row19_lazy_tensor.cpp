// row: 19
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i128_o128
// mode: test
// stopped by: verdict WRONG_SHAPE: not a tensor
// tries: to return a tensor that does its work when somebody first reads it.
#include "../common/python_extension.h"

static const char* const kText = R"(
import torch

class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), words=None):
        with torch._C.DisableTorchFunctionSubclass():
            for argument in arguments:
                if type(argument) is Lazy and argument.work is not None:
                    work, argument.work = argument.work, None
                    argument.copy_(torch.relu(torch.addmm(work[2], work[0], work[1].t())))
            return function(*arguments, **(words or {}))

out = out.as_subclass(Lazy)
out.work = (x.clone(), weights.clone(), biases.clone())
)";

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  return hostile::python(kText, x, weights, biases, hostile::unwritten(x, weights));
}
