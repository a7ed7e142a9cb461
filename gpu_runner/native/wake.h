// Wakes the OpenMP threads of this process, so that a timed call finds them as it would in a loop.
//
// Threads that sleep need some 50 us to come back, and whether they sleep depends on what the
// process did before the call. Every copy of GNU OpenMP counts: PyTorch brings one of its own.
// They must not spin for long either: to the supervisor's clock, which counts what every thread
// has run, a thread that waits after a call looks like one that still works on it. Teams of more
// threads than processors are not woken: of 64 threads on one processor most would be on their way
// back to sleep when the call begins, and take its time.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "flush.h"

// A copy of GNU OpenMP.
struct KbOpenMp {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  int (*most_threads)();
};

static inline int kb_count_library(dl_phdr_info* info, size_t, void* count) {
  *static_cast<unsigned long long*>(count) = info->dlpi_adds;  // libraries ever loaded
  return 1;
}

static inline int kb_note_library(dl_phdr_info* info, size_t, void* names) {
  if (std::strstr(info->dlpi_name, "libgomp") != nullptr)
    static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  return 0;
}

static inline std::vector<KbOpenMp> kb_find_openmp() {
  std::vector<std::string> names;
  dl_iterate_phdr(kb_note_library, &names);
  std::vector<KbOpenMp> found;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    KbOpenMp one{};
    one.parallel = reinterpret_cast<decltype(one.parallel)>(dlsym(handle, "GOMP_parallel"));
    one.most_threads = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
    if (one.parallel != nullptr && one.most_threads != nullptr) found.push_back(one);
  }
  return found;
}

static inline void kb_nothing(void*) {}

constexpr double kKbSpinNs = 5000;

// Has the threads of GNU OpenMP spin for some 5 us before they sleep, whatever a pause takes here
// (40 to 140 cycles on x86-64). Call it before that library is loaded, which reads the environment.
KB_EXPORT void kb_spin_briefly(void) {
  constexpr unsigned kTried = 2000;
  static std::atomic<int> never{0};
  double least_ns = 1e9;
  for (int trial = 0; trial < 5; ++trial) {
    uint64_t began = kb_now_ns();
    for (unsigned i = 0; i < kTried && never.load() == 0; ++i) {
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
    least_ns = std::min(least_ns, static_cast<double>(kb_now_ns() - began));
  }
  unsigned long spins = static_cast<unsigned long>(kKbSpinNs * kTried / std::max(least_ns, 1.0));
  setenv("GOMP_SPINCOUNT", std::to_string(std::max(spins, 1ul)).c_str(), 1);
}

// Runs an empty parallel region, on the calling thread's team, in every GNU OpenMP that is loaded
// and whose team has a processor for each thread.
KB_EXPORT void kb_wake(void) {
  static unsigned long long seen = 0;
  static std::vector<KbOpenMp> found;
  unsigned long long loaded = 0;
  dl_iterate_phdr(kb_count_library, &loaded);
  if (loaded != seen) found = kb_find_openmp();
  seen = loaded;
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) return;
  for (const KbOpenMp& one : found)
    if (one.most_threads() <= CPU_COUNT(&processors)) one.parallel(kb_nothing, nullptr, 0, 0);
}

// Chosen: a waiting thread needs far less than 1 ms to sleep; with nobody else, to yield takes less
// than 3 us.
constexpr uint64_t kKbSettleNs = 1000000, kKbAloneNs = 3000;

// Lets the other threads of this processor go back to sleep: those that were continued with this one
// have to run for that. Returns when nobody else wants to run, or after 1 ms.
KB_EXPORT void kb_settle(void) {
  uint64_t began = kb_now_ns(), last = began;
  for (int alone = 0; alone < 3 && last - began < kKbSettleNs;) {
    sched_yield();
    uint64_t now = kb_now_ns();
    alone = now - last < kKbAloneNs ? alone + 1 : 0;
    last = now;
  }
}
