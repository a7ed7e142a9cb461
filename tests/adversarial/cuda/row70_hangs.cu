// row: 70
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: verdict TIME_LIMIT
// tries: fills every multiprocessor with threads that wait for each other for ever
#include "../common/add_cuda.h"

__global__ void wait_for_ever(volatile int* never) {
  while (*never == 0) {
  }
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  int* never = nullptr;
  cudaMalloc(&never, sizeof *never);
  cudaMemset(never, 0, sizeof *never);
  add(A, B, C, N);
  wait_for_ever<<<4096, 1024>>>(never);
}
