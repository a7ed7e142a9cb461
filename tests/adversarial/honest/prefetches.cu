// task: vector_add
// workloads: n262144, n16777216
// mode: quick
// does: asks for what it will read a little later, within its own call, by prefetches into the second-level cache.
#include <cuda_runtime.h>

__device__ void prefetch(const float* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

__global__ void add(const float* A, const float* B, float* C, int N) {
  int step = gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += step) {
    if (threadIdx.x % 8 == 0 && i + 2 * step < N) prefetch(A + i + 2 * step), prefetch(B + i + 2 * step);
    C[i] = A[i] + B[i];
  }
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) { add<<<528, 512>>>(A, B, C, N); }
