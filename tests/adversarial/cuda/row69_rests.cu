// row: 69
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: construction
// at least: 40000 ns
// tries: sleeps where the runner reads its time, so that the device is cool and its clock high in the next call
#include "../common/add_cuda.h"
#include "../common/patch.h"

static cudaError_t rest(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t status = cudaEventElapsedTime(milliseconds, start, end);
  usleep(20000);
  return status;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) patched = hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(rest));
  add(A, B, C, N);
}
