// row: 2
// abi: c
// task: dot_product
// mode: test
// workloads: n65536
// stopped by: verdict WRONG_RESULT
// tries: Adds its parts onto the output without setting it to zero first, as if outputs came zeroed.
#include <cuda_runtime.h>

__global__ void dot(const float* X, const float* Y, float* loss, int N) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
    sum += X[i] * Y[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(loss, sum);
}

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  dot<<<64, 256>>>(X, Y, loss, N);
}
