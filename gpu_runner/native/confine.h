// Takes from this process, for good, what a submission has no use for: other processes, programs,
// sockets, limits, and signals that look like somebody else's. Called once, before a line of the
// submission has run; the jail's own filter stays in force beside this one.
//
// On a CPU only the system calls listed here remain. A CUDA driver needs more of them than anybody
// has listed, so on a GPU the calls that would do harm are refused one by one.
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>
#include <vector>

#include "syscalls.h"

namespace kbench_confine {

#if defined(__x86_64__)
constexpr unsigned kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kMachine = 0;
#endif

#ifdef KBENCH_CUDA
constexpr bool kOnGpu = true;
#else
constexpr bool kOnGpu = false;
#endif

// Puts the filter together. After each rule the number of the call is loaded.
class Filter {
 public:
  Filter() {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
    answer(EPERM);
    load_number();
#if defined(__x86_64__)
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);  // the x32 table
    answer(EPERM);
#endif
  }

  // Answers a call with an errno, or lets it pass with 0.
  void rule(unsigned number, int error) {
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    answer(error);
  }

  // Lets a call pass only where an argument, as an int, is one of these.
  void only(unsigned number, int argument, std::initializer_list<unsigned> values) {
    auto count = static_cast<unsigned char>(values.size());
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, static_cast<unsigned char>(count + 3));
    load_argument(argument);
    unsigned char left = count;
    for (unsigned value : values) add(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0);
    answer(EPERM);
    answer(0);
  }

  // Refuses a call where an argument, as an int, is one of these.
  void never(unsigned number, int argument, std::initializer_list<unsigned> values) {
    auto left = static_cast<unsigned char>(values.size());
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, static_cast<unsigned char>(left + 3));
    load_argument(argument);
    for (unsigned value : values) add(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0);
    answer(0);
    answer(EPERM);
  }

  // Lets `clone` start threads, and no processes.
  void only_threads() {
    add(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4);
    load_argument(0);
    add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    answer(EPERM);
    answer(0);
  }

  // Allows reading limits, but setting only the limit of stacks, which NVRTC raises.
  void only_asked_limits() {
    add(BPF_JMP | BPF_JEQ | BPF_K, __NR_prlimit64, 0, 9);
    load_argument(1);
    add(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_STACK, 0, 1);
    answer(0);
    for (int half : {0, 1}) {
      load_argument(2, half);
      add(BPF_JMP | BPF_JEQ | BPF_K, 0, half == 0 ? 0 : 1, half == 0 ? 2 : 0);
    }
    answer(EPERM);
    answer(0);
  }

  // Lets a process signal itself by what a program that fails dies of: what ends it otherwise was
  // sent by somebody else, and a submission cannot look as if that had happened.
  void only_own_signals() {
    constexpr int kOthers[] = {SIGKILL, SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                               SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};
    constexpr unsigned char kCount = sizeof kOthers / sizeof *kOthers;
    add(BPF_JMP | BPF_JEQ | BPF_K, __NR_tgkill, 0, kCount + 5);
    load_argument(0);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(getpid()), 0, kCount + 2);
    load_argument(2);
    unsigned char left = kCount;
    for (int number : kOthers) add(BPF_JMP | BPF_JEQ | BPF_K, number, left--, 0);
    answer(0);
    answer(EPERM);
  }

  // Answers the calls that no rule has named so far; those of new kernels as an old one would, so
  // that libraries do without.
  void otherwise(int error) {
    if (error != 0) {
      add(BPF_JMP | BPF_JGE | BPF_K, kFirstNewCall, 0, 1);
      answer(ENOSYS);
    }
    answer(error);
  }

  // Returns 0, or the errno of what failed.
  int install() {
    sock_fprog filter{static_cast<unsigned short>(program_.size()), program_.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
    // All threads at once: a CUDA driver has some by now. The filter is no reason to make branches
    // slower, as older kernels would.
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    long failed = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    if (failed > 0) return EAGAIN;  // the thread of this id cannot take the filter
    return failed == 0 ? 0 : errno;
  }

 private:
  void add(unsigned code, unsigned value, unsigned char if_true = 0, unsigned char if_false = 0) {
    program_.push_back({static_cast<unsigned short>(code), if_true, if_false, value});
  }
  void answer(int error) {
    add(BPF_RET | BPF_K, error == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | unsigned(error));
  }
  void load_number() { add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)); }
  void load_argument(int index, int half = 0) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 8 * index + 4 * half);
  }

  std::vector<sock_filter> program_;
};

}  // namespace kbench_confine

// Returns 0, or the errno of what failed: then nothing of a submission may be loaded.
inline int confine(bool on_gpu = kbench_confine::kOnGpu) {
  using namespace kbench_confine;
  if (kMachine == 0) return ENOSYS;
  Filter filter;
  filter.only_threads();
  filter.rule(__NR_clone3, ENOSYS);  // glibc then takes clone, whose flags show
  filter.only_own_signals();
  filter.only_asked_limits();
  if (on_gpu) {
    filter.never(__NR_prctl, 0, kHarmfulProcessCommands);
    for (unsigned number : kHarmfulCalls) filter.rule(number, EPERM);
    filter.otherwise(0);
  } else {
    filter.only(__NR_fcntl, 1, kFileCommands);
    filter.only(__NR_ioctl, 1, kDeviceCommands);
    filter.only(__NR_prctl, 0, kProcessCommands);
    for (unsigned number : kNeededCalls) filter.rule(number, 0);
    filter.otherwise(EPERM);
  }
  return filter.install();
}
