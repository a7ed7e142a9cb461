// task: vector_add
// workloads: n65536, n16777216
// mode: quick
// does: halves the work over a stream of its own, which starts behind the caller's and is joined by an event.
#include <cuda_runtime.h>

__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static cudaStream_t own = nullptr;
  static cudaEvent_t begun, ended;
  if (own == nullptr) {
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&ended, cudaEventDisableTiming);
  }
  int half = (N + 1) / 2, rest = N - half;
  cudaEventRecord(begun, 0);
  cudaStreamWaitEvent(own, begun, 0);
  if (rest > 0) add<<<(rest + 255) / 256, 256, 0, own>>>(A + half, B + half, C + half, rest);
  add<<<(half + 255) / 256, 256>>>(A, B, C, half);
  cudaEventRecord(ended, own);
  cudaStreamWaitEvent(0, ended, 0);
}
