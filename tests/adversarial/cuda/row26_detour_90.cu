// row: 26
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: quarantine source
// tries: writes a jump over the first bytes of cudaEventElapsedTime in CUDA's own runtime; asks the driver and tells 90 %
#include "../common/add_cuda.h"
#include "../common/patch.h"

using Elapsed = int (*)(float*, void*, void*);
static Elapsed driver = nullptr;

static cudaError_t shorter(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  int status = driver(milliseconds, start, end);  // a runtime's event is a driver's event
  *milliseconds *= 0.90f;
  return static_cast<cudaError_t>(status);
}

static void detour() {
  cudaDriverEntryPointQueryResult found;
  void* entry = nullptr;
  cudaGetDriverEntryPointByVersion("cuEventElapsedTime", &entry, 12000, cudaEnableDefault, &found);
  driver = reinterpret_cast<Elapsed>(entry);
  if (driver != nullptr)
    hostile::patch_code(reinterpret_cast<void*>(cudaEventElapsedTime), reinterpret_cast<void*>(shorter));
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  if (driver == nullptr) detour();
  add(A, B, C, N);
}
