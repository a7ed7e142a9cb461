// Takes from this process, for good, what a submission has no use for: other processes, programs,
// sockets, and on a CPU anonymous files. Threads stay allowed. Called once, before a line of the
// submission has run; the jail's own filter stays in force beside this one.
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kbench_confine {

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kMachine = 0;
#endif

#ifdef KBENCH_CUDA
constexpr bool kMemoryFiles = true;  // the driver wants some
#else
constexpr bool kMemoryFiles = false;
#endif

constexpr sock_filter load(unsigned offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
}
constexpr sock_filter skip_unless(unsigned value, unsigned char count) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, count, value};
}
constexpr sock_filter answer(unsigned error) {
  return {BPF_RET | BPF_K, 0, 0, error == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | error};
}

}  // namespace kbench_confine

// Returns 0, or the errno of what failed: then nothing of a submission may be loaded.
inline int confine(bool memory_files = kbench_confine::kMemoryFiles) {
  using namespace kbench_confine;
  if (kMachine == 0) return ENOSYS;
  constexpr unsigned kNumber = offsetof(seccomp_data, nr);
  constexpr unsigned kFlags = offsetof(seccomp_data, args);
  sock_filter program[] = {
      load(offsetof(seccomp_data, arch)),
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kMachine},
      answer(EPERM),
      load(kNumber),
#if defined(__x86_64__)
      {BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000},  // the x32 table
      answer(EPERM),
      skip_unless(__NR_fork, 1), answer(EPERM),
      skip_unless(__NR_vfork, 1), answer(EPERM),
#endif
      skip_unless(__NR_execve, 1), answer(EPERM),
      skip_unless(__NR_execveat, 1), answer(EPERM),
      skip_unless(__NR_socket, 1), answer(EPERM),
      skip_unless(__NR_socketpair, 1), answer(EPERM),
      skip_unless(__NR_connect, 1), answer(EPERM),
      skip_unless(__NR_bind, 1), answer(EPERM),
      skip_unless(__NR_listen, 1), answer(EPERM),
      skip_unless(__NR_memfd_create, 1), answer(memory_files ? 0 : EPERM),
      skip_unless(__NR_clone3, 1), answer(ENOSYS),  // glibc then takes clone, whose flags show
      skip_unless(__NR_clone, 3),
      load(kFlags),
      {BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD},
      answer(EPERM),
      answer(0),
  };
  sock_fprog filter{sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  // All threads at once: a CUDA driver has some by now. The filter is no reason to make branches
  // slower, as older kernels would.
  unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  long failed = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  if (failed > 0) return EAGAIN;  // the thread of this id cannot take the filter
  return failed == 0 ? 0 : errno;
}
