// task: vector_add
// workloads: n65536
// mode: quick
// does: captures a graph in every call, launches it and throws it away.
#include <cuda_runtime.h>

__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static cudaStream_t capturing = nullptr;
  if (capturing == nullptr) cudaStreamCreate(&capturing);
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  cudaStreamBeginCapture(capturing, cudaStreamCaptureModeThreadLocal);
  add<<<(N + 255) / 256, 256, 0, capturing>>>(A, B, C, N);
  cudaStreamEndCapture(capturing, &graph);
  cudaGraphInstantiate(&runnable, graph, 0);
  cudaGraphLaunch(runnable, 0);
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
}
