// The honest work of vector_add on a device.
#include <cuda_runtime.h>

__global__ void add_elements(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}

static inline void add(const float* A, const float* B, float* C, int N, cudaStream_t stream = 0) {
  if (N > 0) add_elements<<<(N + 255) / 256, 256, 0, stream>>>(A, B, C, N);
}
