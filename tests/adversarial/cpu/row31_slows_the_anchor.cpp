// row: 31
// abi: c
// task: vector_add
// mode: ranked
// workloads: cpu_n262144
// baselines: eager
// at most: 2.5 x
// stopped by: construction
// must not print: GOT
// tries: to leave busy processes behind, so that the anchor and the baselines that it stands for look slow
#include "../common/add.h"
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

static void busy() {
  for (;;) asm volatile("");
}

// A process of its own that outlives this one.
static void leave_something() {
  if (setpriority(PRIO_PROCESS, 0, -20) == 0) puts("GOT the highest priority");
  fflush(stdout);
  for (int i = 0; i < 4; ++i) {
    if (fork() == 0) {
      setsid();
      for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
      busy();
    }
  }
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool left = false;
  add(A, B, C, N);
  if (!left) leave_something();
  left = true;
}
