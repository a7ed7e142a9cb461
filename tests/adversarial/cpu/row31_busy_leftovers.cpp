// row: 31
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: test
// stopped by: construction
// must not print: GOT
// tries: to leave busy processes behind that slow down whatever is measured next.
#include "../common/add.h"
#include <cstdio>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool done = false;
  add(A, B, C, N);
  if (done) return;
  done = true;
  fflush(stdout);
  if (setpriority(PRIO_PROCESS, 0, -20) == 0) puts("GOT the highest priority");
  fflush(stdout);
  for (int i = 0; i < 3; ++i) {
    if (fork() != 0) continue;
    setsid();
    if (fork() != 0) _exit(0);
    for (int fd = 0; fd < 256; ++fd) close(fd);
    for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    for (;;) asm volatile("");
  }
}
