// task: vector_add
// workloads: n65536, n262144
// mode: quick
// does: keeps one graph and gives its kernel the new pointers before every launch.
#include <cuda_runtime.h>

__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static cudaGraph_t graph = nullptr;
  static cudaGraphExec_t runnable = nullptr;
  static cudaGraphNode_t node = nullptr;
  void* arguments[] = {&A, &B, &C, &N};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = dim3((N + 255) / 256);
  kernel.blockDim = dim3(256);
  kernel.kernelParams = arguments;
  if (graph == nullptr) {
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel);
    cudaGraphInstantiate(&runnable, graph, 0);
  } else {
    cudaGraphExecKernelNodeSetParams(runnable, node, &kernel);
  }
  cudaGraphLaunch(runnable, 0);
}
