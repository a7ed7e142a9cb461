// row: 64
// abi: c
// task: vector_add
// mode: quick
// workloads: n65536
// stopped by: construction
// stopped by: verdict MEMORY_LIMIT
// tries: takes all memory of the device in ever smaller pieces and keeps it, so that nobody else can measure
#include "../common/add_cuda.h"

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool full = false;
  for (size_t bytes = size_t{1} << 36; !full && bytes >= 4096;) {
    void* taken = nullptr;
    if (cudaMalloc(&taken, bytes) != cudaSuccess) bytes /= 2;
    else cudaMemsetAsync(taken, 1, bytes);
  }
  full = true;
  cudaGetLastError();
  add(A, B, C, N);
}
