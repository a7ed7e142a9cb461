// row: 63
// abi: c
// task: vector_add
// mode: test
// workloads: n1024
// stopped by: verdict COMPILE_ERROR
// stopped by: verdict MEMORY_LIMIT
// stopped by: verdict RUNTIME_ERROR
// tries: asks for a terabyte of device memory before a line of it has run
#include "../common/add_cuda.h"

__device__ char giant[size_t{1} << 40];

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  void* at = nullptr;
  cudaGetSymbolAddress(&at, giant);
  if (at != nullptr) add(A, B, C, N);
}
