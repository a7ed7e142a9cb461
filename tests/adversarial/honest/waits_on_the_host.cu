// task: dot_product
// workloads: n65536
// mode: quick
// does: waits for the device inside its call, and finishes the sum on the host.
#include <cuda_runtime.h>

#include <vector>

constexpr int kBlocks = 64, kThreads = 256;

__global__ void partial(const float* X, const float* Y, float* parts, int N) {
  __shared__ float warps[kThreads / 32];
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < N; i += kBlocks * kThreads) sum += X[i] * Y[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = 0;
  for (float part : warps) sum += part;
  parts[blockIdx.x] = sum;
}

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  static float* parts = nullptr;
  if (parts == nullptr) cudaMalloc(&parts, kBlocks * sizeof(float));
  std::vector<float> host(kBlocks);
  partial<<<kBlocks, kThreads>>>(X, Y, parts, N);
  cudaMemcpy(host.data(), parts, kBlocks * sizeof(float), cudaMemcpyDeviceToHost);
  float sum = 0;
  for (float part : host) sum += part;
  cudaMemcpy(loss, &sum, sizeof sum, cudaMemcpyHostToDevice);
}
