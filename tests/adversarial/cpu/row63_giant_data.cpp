// row: 63
// abi: c
// task: vector_add
// mode: test
// stopped by: verdict COMPILE_ERROR
// tries: to fill the build's disk and memory with a library of many GB.
#include "../common/add.h"
static char giant[1ul << 36] __attribute__((section(".data"))) = {1};

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add(A, B, C, N);
  if (giant[N] != 0) C[0] = 0;
}
