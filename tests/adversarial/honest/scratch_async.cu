// task: dot_product
// workloads: n65536, n1048576
// mode: quick
// does: takes scratch memory from the stream-ordered allocator in every call, and gives it back.
#include <cuda_runtime.h>

constexpr int kBlocks = 128, kThreads = 256;

__device__ float sum_block(float sum) {
  __shared__ float parts[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += parts[i];
  return sum;
}

__global__ void partial(const float* X, const float* Y, float* parts, int N) {
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N; i += kBlocks * kThreads) sum += X[i] * Y[i];
  sum = sum_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void total(const float* parts, float* loss) {
  float sum = sum_block(threadIdx.x < kBlocks ? parts[threadIdx.x] : 0);
  if (threadIdx.x == 0) *loss = sum;
}

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  float* parts = nullptr;
  if (cudaMallocAsync(&parts, kBlocks * sizeof(float), 0) != cudaSuccess) return;
  partial<<<kBlocks, kThreads>>>(X, Y, parts, N);
  total<<<1, kThreads>>>(parts, loss);
  cudaFreeAsync(parts, 0);
}
