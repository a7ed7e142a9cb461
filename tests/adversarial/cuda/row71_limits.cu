// row: 71
// abi: c
// task: vector_add
// mode: ranked
// workloads: n65536
// stopped by: construction
// must not print: GOT
// tries: changes the limits of its context, and looks whether those of an earlier process are still in force
#include "../common/add_cuda.h"
#include <cstdio>

struct Limit {
  cudaLimit which;
  size_t value;
};

static const Limit kLimits[] = {{cudaLimitStackSize, 7168},
                                {cudaLimitMallocHeapSize, size_t{48} << 20},
                                {cudaLimitPrintfFifoSize, size_t{3} << 20},
                                {cudaLimitMaxL2FetchGranularity, 32},
                                {cudaLimitPersistingL2CacheSize, size_t{8} << 20}};

static bool change() {
  int kept = 0;
  for (const Limit& limit : kLimits) {
    size_t now = 0;
    if (cudaDeviceGetLimit(&now, limit.which) != cudaSuccess) continue;
    bool ours = now == limit.value && limit.which != cudaLimitMaxL2FetchGranularity;
    if (ours) printf("GOT limit %d of an earlier process\n", static_cast<int>(limit.which));
    kept += ours;
    cudaDeviceSetLimit(limit.which, limit.value);
  }
  cudaDeviceSetCacheConfig(cudaFuncCachePreferShared);
  cudaGetLastError();
  fflush(stdout);
  return kept > 0;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool kept = change();
  (void)kept;
  add(A, B, C, N);
}
