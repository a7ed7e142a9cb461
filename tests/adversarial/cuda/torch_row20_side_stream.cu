// row: 20
// abi: torch
// task: linear_relu
// mode: ranked
// workloads: b512_i4096_o4096
// stopped by: verdict VIOLATION: the device needs at least
// stopped by: raised
// tries: works on a stream out of the framework's pool and returns without joining it
#include <torch/extension.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

torch::Tensor forward(torch::Tensor x, torch::Tensor weights, torch::Tensor biases) {
  static c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();
  c10::cuda::CUDAStreamGuard guard(side);
  return torch::relu(torch::addmm(biases, x, weights.t()));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
