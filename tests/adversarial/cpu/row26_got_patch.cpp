// row: 26
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// tries: to give the runner a clock at 90 % through its table of imports.
#include "../common/add.h"
#include "../common/patch.h"
#include <time.h>

static int slow_clock(clockid_t clock, timespec* now) {
  static long base = 0;
  int status = clock_gettime(clock, now);
  long ns = now->tv_sec * 1000000000L + now->tv_nsec;
  if (base == 0) base = ns;
  ns = base + (ns - base) / 10 * 9;
  now->tv_sec = ns / 1000000000L;
  now->tv_nsec = ns % 1000000000L;
  return status;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = hostile::patch_import("clock_gettime", reinterpret_cast<void*>(slow_clock));
  add(A, B, C, N + 0 * patched);
}
