// Puts a range of memory out of the CPU's caches, and reads the monotonic clock.
//
// Both are emitted wherever this header is included, so that a shared library made of nothing else
// exports them.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif !defined(__aarch64__)
#include <vector>
#endif

#define KB_EXPORT extern "C" __attribute__((used, visibility("default"))) inline

#if defined(__x86_64__)

constexpr uintptr_t kKbLine = 64;  // bytes; of every x86-64 CPU

static inline bool kb_has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}

__attribute__((target("clflushopt"))) static inline void kb_flush_fast(uintptr_t at,
                                                                       uintptr_t end) {
  for (; at < end; at += kKbLine) _mm_clflushopt(reinterpret_cast<void*>(at));
}

static inline void kb_flush_slow(uintptr_t at, uintptr_t end) {
  for (; at < end; at += kKbLine) _mm_clflush(reinterpret_cast<void*>(at));
}

KB_EXPORT void kb_flush(const void* address, size_t bytes) {
  static const bool fast = kb_has_clflushopt();
  uintptr_t at = reinterpret_cast<uintptr_t>(address) & ~(kKbLine - 1);
  uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  (fast ? kb_flush_fast : kb_flush_slow)(at, end);
  _mm_mfence();
}

#elif defined(__aarch64__)

KB_EXPORT void kb_flush(const void* address, size_t bytes) {
  uint64_t type = 0;
  asm volatile("mrs %0, ctr_el0" : "=r"(type));
  uintptr_t line = uintptr_t{4} << ((type >> 16) & 15);  // bytes of the smallest data cache line
  uintptr_t at = reinterpret_cast<uintptr_t>(address) & ~(line - 1);
  uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  for (; at < end; at += line) asm volatile("dc civac, %0" : : "r"(at) : "memory");
  asm volatile("dsb ish" : : : "memory");
}

#else

// No instruction for it: writes more than any last-level cache holds, which evicts everything.
KB_EXPORT void kb_flush(const void*, size_t) {
  static std::vector<uint64_t> large((size_t{256} << 20) / sizeof(uint64_t));
  for (size_t i = 0; i < large.size(); i += 4) large[i] += i;
  asm volatile("" : : "r"(large.data()) : "memory");
}

#endif

KB_EXPORT uint64_t kb_now_ns(void) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}
