// row: 24
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// tries: to slow down every clock of the process to 90 %, by writing over the C library's code.
#include "../common/add.h"
#include "../common/patch.h"
#include <sys/syscall.h>
#include <time.h>

static int slow_clock(clockid_t clock, timespec* now) {
  static long base = 0;
  syscall(SYS_clock_gettime, clock, now);
  long ns = now->tv_sec * 1000000000L + now->tv_nsec;
  if (base == 0) base = ns;
  ns = base + (ns - base) / 10 * 9;
  now->tv_sec = ns / 1000000000L;
  now->tv_nsec = ns % 1000000000L;
  return 0;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool patched = false;
  add(A, B, C, N);
  if (patched) return;
  patched = true;
  hostile::patch_code(reinterpret_cast<void*>(clock_gettime), reinterpret_cast<void*>(slow_clock));
}
