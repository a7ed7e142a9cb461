// task: dot_product
// workloads: n65536, n524288
// mode: quick
// does: clears its output by a memset and adds onto it by atomics, so that the order of its sum varies.
#include <cuda_runtime.h>

__global__ void dot(const float* X, const float* Y, float* loss, int N) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) sum += X[i] * Y[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(loss, sum);
}

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  cudaMemsetAsync(loss, 0, sizeof(float), 0);
  dot<<<132, 256>>>(X, Y, loss, N);
}
