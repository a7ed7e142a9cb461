// row: 30
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: quarantine source
// tries: tells one and the same time, 90 % of the shortest so far, so that a stopping rule is content at once
#include "../common/add_cuda.h"
#include "../common/patch.h"

static cudaError_t steady(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  static float best = 1e9f;
  cudaError_t status = cudaEventElapsedTime(milliseconds, start, end);
  if (*milliseconds < best) best = *milliseconds;
  *milliseconds = 0.90f * best;
  return status;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) patched = hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(steady));
  add(A, B, C, N);
}
