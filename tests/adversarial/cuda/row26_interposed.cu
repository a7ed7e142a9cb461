// row: 26
// abi: c
// task: vector_add
// mode: quick
// workloads: n65536
// stopped by: quarantine source
// stopped by: quarantine library
// must not print: GOT
// tries: defines cudaEventElapsedTime itself, in the hope that the runner will be bound to it
#include "../common/add_cuda.h"
#include <cstdio>

extern "C" cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  printf("GOT a call that was meant for the clock\n");
  fflush(stdout);
  *milliseconds = 1e-3f;
  return cudaSuccess;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) { add(A, B, C, N); }
