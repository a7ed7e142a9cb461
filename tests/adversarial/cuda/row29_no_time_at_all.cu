// row: 29
// abi: c
// task: vector_add
// mode: quick
// workloads: n262144
// stopped by: verdict VIOLATION
// tries: tells a denormal time, which would pull a geometric mean to zero
#include "../common/add_cuda.h"
#include "../common/patch.h"
#include <cfloat>

static cudaError_t none(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = FLT_TRUE_MIN;
  return cudaSuccess;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) patched = hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(none));
  add(A, B, C, N);
}
