// task: rms_norm
// workloads: n1024, n65536
// mode: quick
// does: has all blocks wait for each other within one cooperative launch.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

constexpr int kBlocks = 32, kThreads = 256;

__global__ void normalise(float* output, const float* input, const float* weight, const float* bias, float epsilon,
                     int N, float* parts) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  __shared__ float warps[kThreads / 32];
  float sum = 0;
  for (int i = grid.thread_rank(); i < N; i += grid.size()) sum += input[i] * input[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  block.sync();
  if (threadIdx.x == 0) {
    sum = 0;
    for (float part : warps) sum += part;
    parts[blockIdx.x] = sum;
  }
  grid.sync();
  sum = 0;
  for (int i = 0; i < kBlocks; ++i) sum += __ldcg(parts + i);
  float factor = 1.0f / sqrtf(sum / N + epsilon);
  for (int i = grid.thread_rank(); i < N; i += grid.size()) output[i] = input[i] * factor * weight[i] + bias[i];
}

extern "C" void rms_norm(float* output, const float* input, const float* weight, const float* bias,
                         const float epsilon, const int N) {
  static float* parts = nullptr;
  if (parts == nullptr) cudaMalloc(&parts, kBlocks * sizeof(float));
  float small = epsilon;
  int count = N;
  void* arguments[] = {&output, &input, &weight, &bias, &small, &count, &parts};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(normalise), dim3(kBlocks), dim3(kThreads), arguments, 0, 0);
}
