// row: 31, 59
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// tries: acts as its library is loaded, before any check: patches the clock, and starts a thread and a process that go on by themselves, busy
#include "../common/add_cuda.h"
#include "../common/patch.h"
#include <atomic>
#include <sys/types.h>
#include <thread>

static std::atomic<float> factor{1.0f};

static cudaError_t shorter(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t status = cudaEventElapsedTime(milliseconds, start, end);
  *milliseconds *= factor;
  return status;
}

__attribute__((constructor)) static void begin() {
  hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(shorter));
  std::thread([] {
    for (;;) factor = 0.85f;
  }).detach();
  if (fork() != 0) return;
  setsid();
  for (int fd = 0; fd < 256; ++fd) close(fd);
  for (;;) asm volatile("");
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) { add(A, B, C, N); }
