// row: 28
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: quarantine source
// tries: turns CUPTI off where a profiler has brought it, then tells 90 % of the events' time
#include "../common/add_cuda.h"
#include "../common/patch.h"
#include <dlfcn.h>

static void blind_profilers() {
  for (const char* name : {"libcupti.so", "libcupti.so.13", "libcupti.so.12"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) continue;
    auto disable = reinterpret_cast<int (*)(int)>(dlsym(library, "cuptiActivityDisable"));
    auto finish = reinterpret_cast<int (*)()>(dlsym(library, "cuptiFinalize"));
    for (int kind = 1; disable != nullptr && kind < 60; ++kind) disable(kind);
    if (finish != nullptr) finish();
  }
}

static cudaError_t shorter(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t status = cudaEventElapsedTime(milliseconds, start, end);
  *milliseconds *= 0.90f;
  return status;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) {
    blind_profilers();
    patched = hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(shorter));
  }
  add(A, B, C, N);
}
