// row: 67
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// stopped by: construction
// at least: 10000 ns
// tries: to keep all inputs in the caches, by a thread that reads them without rest.
#include "../common/add.h"
#include "../common/arenas.h"
#include <thread>

static void warm() {
  hostile::Range inputs = hostile::shared_memory("inputs");
  for (;;)
    for (const char* at = inputs.low; at < inputs.high; at += 64) __builtin_prefetch(at);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static std::thread* helper = new std::thread(warm);
  add(A, B, C, helper == nullptr ? 0 : N);
}
