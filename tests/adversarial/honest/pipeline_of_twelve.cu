// task: vector_add
// workloads: n65536
// mode: quick
// raised at most: 2.5 x
// does: launches twelve tiny kernels, each of them a twelfth of the work.
#include <cuda_runtime.h>

__global__ void add(const float* A, const float* B, float* C, int low, int high) {
  int i = low + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < high) C[i] = A[i] + B[i];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  constexpr int kParts = 12;
  int part = (N + kParts - 1) / kParts;
  for (int low = 0; low < N; low += part) {
    int high = low + part < N ? low + part : N;
    add<<<(high - low + 255) / 256, 256>>>(A, B, C, low, high);
  }
}
