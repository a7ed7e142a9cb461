// Wakes the OpenMP threads of this process, so that a timed call finds them as it would in a loop.
//
// Threads that sleep need some 50 us to come back, and whether they sleep depends on what the
// process did before the call. Every copy of GNU OpenMP counts: PyTorch brings one of its own.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "flush.h"

using KbParallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

static inline int kb_count_library(dl_phdr_info* info, size_t, void* count) {
  *static_cast<unsigned long long*>(count) = info->dlpi_adds;  // libraries ever loaded
  return 1;
}

static inline int kb_note_library(dl_phdr_info* info, size_t, void* names) {
  if (std::strstr(info->dlpi_name, "libgomp") != nullptr)
    static_cast<std::vector<std::string>*>(names)->push_back(info->dlpi_name);
  return 0;
}

static inline std::vector<KbParallel> kb_find_parallel() {
  std::vector<std::string> names;
  dl_iterate_phdr(kb_note_library, &names);
  std::vector<KbParallel> found;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    void* symbol = handle == nullptr ? nullptr : dlsym(handle, "GOMP_parallel");
    if (symbol != nullptr) found.push_back(reinterpret_cast<KbParallel>(symbol));
  }
  return found;
}

static inline void kb_nothing(void*) {}

// Runs an empty parallel region, on the calling thread's team, in every GNU OpenMP that is loaded.
KB_EXPORT void kb_wake(void) {
  static unsigned long long seen = 0;
  static std::vector<KbParallel> found;
  unsigned long long loaded = 0;
  dl_iterate_phdr(kb_count_library, &loaded);
  if (loaded != seen) found = kb_find_parallel();
  seen = loaded;
  for (KbParallel parallel : found) parallel(kb_nothing, nullptr, 0, 0);
}
