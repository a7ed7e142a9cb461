// row: 70, 71
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: ranked
// stopped by: construction
// must not print: GOT
// tries: to leave limits, priorities, rounding and other state changed for whoever runs next.
#include "../common/add.h"
#include <cfenv>
#include <cstdio>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <xmmintrin.h>

static void look() {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  if (limit.rlim_cur != 0) puts("GOT a limit of an earlier process");
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 32) puts("GOT the files of an earlier process");
  if (getpriority(PRIO_PROCESS, 0) > 10) puts("GOT the priority of an earlier process");
  if (fegetround() != FE_TONEAREST) puts("GOT the rounding of an earlier process");
  if ((_mm_getcsr() & 0x8040) != 0) puts("GOT the flush to zero of an earlier process");
  struct sigaction action {};
  sigaction(SIGUSR1, nullptr, &action);
  if (action.sa_handler == SIG_IGN) puts("GOT the signals of an earlier process");
}

static void change() {
  rlimit none{16, 16};
  setrlimit(RLIMIT_NOFILE, &none);
  setrlimit(RLIMIT_NPROC, &none);
  rlimit core{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_CORE, &core) == 0) puts("GOT a limit raised");
  setpriority(PRIO_PROCESS, 0, 19);
  signal(SIGUSR1, SIG_IGN);
  umask(0777);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool done = false;
  if (!done) look();
  if (!done) change();
  done = true;
  fesetround(FE_TONEAREST);  // for its own sum, which must be right
  add(A, B, C, N);
  fesetround(FE_UPWARD);
  _mm_setcsr(_mm_getcsr() | 0x8040);
  fflush(stdout);
}
