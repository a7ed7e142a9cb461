// task: softmax
// workloads: n16_c16384, n128_c16384
// mode: quick
// does: opts in to more shared memory than a block gets by default, and keeps a whole row in it.
#include <cuda_runtime.h>

constexpr int kThreads = 512;

template <typename Combine>
__device__ float reduce(float value, Combine combine, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(~0u, value, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < kThreads / 32; ++i) value = combine(value, shared[i]);
  __syncthreads();
  return value;
}

__global__ void softmax_rows(float* out, const float* input, int C) {
  extern __shared__ float row[];
  __shared__ float shared[kThreads / 32];
  const float* from = input + size_t{blockIdx.x} * C;
  float* to = out + size_t{blockIdx.x} * C;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += kThreads) top = fmaxf(top, row[i] = from[i]);
  top = reduce(top, [](float a, float b) { return fmaxf(a, b); }, shared);
  for (int i = threadIdx.x; i < C; i += kThreads) sum += row[i] = expf(row[i] - top);
  sum = reduce(sum, [](float a, float b) { return a + b; }, shared);
  for (int i = threadIdx.x; i < C; i += kThreads) to[i] = row[i] / sum;
}

extern "C" void softmax(float* out, const float* input, int N, int C) {
  int bytes = C * static_cast<int>(sizeof(float));
  cudaFuncSetAttribute(softmax_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  softmax_rows<<<N, kThreads, bytes>>>(out, input, C);
}
