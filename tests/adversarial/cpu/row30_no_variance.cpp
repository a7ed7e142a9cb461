// row: 30
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// tries: to end the measurement early, by telling one time below its best again and again.
#include "../common/add.h"
#include "../common/relay.h"

static double told(double time_ns) {
  static double best = 0;
  if (time_ns <= 1) return time_ns;  // a burst's
  if (best == 0 || 0.8 * time_ns < best) best = 0.8 * time_ns;
  return best;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  hostile::relay(told);
  add(A, B, C, N);
}
