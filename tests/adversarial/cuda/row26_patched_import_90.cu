// row: 26
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: quarantine source
// tries: overwrites the runner's import of cudaEventElapsedTime, so that every time reads 90 % of what it was
#include "../common/add_cuda.h"
#include "../common/patch.h"

static cudaError_t shorter(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t status = cudaEventElapsedTime(milliseconds, start, end);
  *milliseconds *= 0.90f;
  return status;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) patched = hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(shorter));
  add(A, B, C, N);
}
