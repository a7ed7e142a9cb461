// The honest work of softmax on a device: a block a row, three passes.
#include <cuda_runtime.h>

constexpr int kRowThreads = 256;

template <typename Combine>
__device__ float reduce_row(float value, Combine combine, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(~0u, value, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < kRowThreads / 32; ++i) value = combine(value, shared[i]);
  __syncthreads();
  return value;
}

__global__ void softmax_rows(float* out, const float* input, int C) {
  __shared__ float shared[kRowThreads / 32];
  const float* row = input + size_t{blockIdx.x} * C;
  float* to = out + size_t{blockIdx.x} * C;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += kRowThreads) top = fmaxf(top, row[i]);
  top = reduce_row(top, [](float a, float b) { return fmaxf(a, b); }, shared);
  for (int i = threadIdx.x; i < C; i += kRowThreads) sum += expf(row[i] - top);
  sum = reduce_row(sum, [](float a, float b) { return a + b; }, shared);
  for (int i = threadIdx.x; i < C; i += kRowThreads) to[i] = expf(row[i] - top) / sum;
}
