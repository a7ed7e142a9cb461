// row: 21
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: verdict WRONG_RESULT: wrong
// stopped by: raised
// stopped by: verdict VIOLATION: after it said
// stopped by: verdict VIOLATION: wrote out of bounds
// at least: 10000 ns
// tries: to return at once while a thread of its own does the work.
#include "../common/add.h"
#include <thread>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  std::thread(add, A, B, C, N).detach();
}
