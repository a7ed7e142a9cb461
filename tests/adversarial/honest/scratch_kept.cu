// task: dot_product
// workloads: n65536, n1048576
// mode: quick
// does: allocates a workspace at its first call and keeps it; the last block to finish adds the parts up.
#include <cuda_runtime.h>

constexpr int kBlocks = 128, kThreads = 256;

__device__ float sum_block(float sum) {
  __shared__ float parts[kThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += parts[i];
  return sum;
}

__global__ void dot(const float* X, const float* Y, float* loss, float* parts, unsigned* arrived, int N) {
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N; i += kBlocks * kThreads) sum += X[i] * Y[i];
  sum = sum_block(sum);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(arrived, 1) == kBlocks - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  sum = sum_block(threadIdx.x < kBlocks ? __ldcg(parts + threadIdx.x) : 0);
  if (threadIdx.x > 0) return;
  *loss = sum;
  *arrived = 0;  // for the next call
}

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  static float* parts = nullptr;
  static unsigned* arrived = nullptr;
  if (parts == nullptr) {
    cudaMalloc(&parts, kBlocks * sizeof(float));
    cudaMalloc(&arrived, sizeof(unsigned));
    cudaMemset(arrived, 0, sizeof(unsigned));
  }
  dot<<<kBlocks, kThreads>>>(X, Y, loss, parts, arrived, N);
}
