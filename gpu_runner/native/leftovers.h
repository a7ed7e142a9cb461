// Finds outputs that depend on memory which nobody wrote: the same call, made again while fresh
// memory holds other bytes, must give the same.
#pragma once

#ifdef __SANITIZE_ADDRESS__

#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

constexpr int kNothing = -1;
constexpr int kPatterns[2] = {0xff, 0x43};  // as float32: not a number, and 195.26

inline int pattern_now = kNothing;
inline thread_local bool zeroed = false;

extern "C" void* __interceptor_calloc(size_t count, size_t size);
// Of the sanitizers' allocator_interface.h, which GCC does not ship.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*on_malloc)(const volatile void*, size_t), void (*on_free)(const volatile void*));

// The hook below cannot see that memory was asked for zeroed.
extern "C" __attribute__((no_sanitize_address)) void* calloc(size_t count, size_t size) {
  zeroed = true;
  void* memory = __interceptor_calloc(count, size);
  zeroed = false;
  return memory;
}

__attribute__((no_sanitize_address)) inline void on_malloc(const volatile void* memory,
                                                           size_t size) {
  if (pattern_now == kNothing || zeroed) return;
  auto bytes = static_cast<volatile char*>(const_cast<volatile void*>(memory));
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(pattern_now);
}

__attribute__((no_sanitize_address, noinline)) inline void dirty_stack(int pattern) {
  volatile char below[128 * 1024];
  for (volatile char& byte : below) byte = static_cast<char>(pattern);
}

// From now on fresh memory, and the stack below, holds `pattern`.
inline void leave_behind(int pattern) {
  static int installed = __sanitizer_install_malloc_and_free_hooks(
      on_malloc, [](const volatile void*) {});
  (void)installed;
  pattern_now = pattern;
  if (pattern != kNothing) dirty_stack(pattern);
}

// Threads that add in no fixed order give one of a few results, and could seem to follow the
// pattern for a while; so a suspicion is confirmed by more calls, in random order.
class Leftovers {
 public:
  using Outputs = std::vector<char>;

  explicit Leftovers(std::function<Outputs(int)> call) : call_(call) {}

  void look() {
    // Not in turns: a kernel that does two things by turns depends on no memory.
    for (int which : {0, 1, 1, 0})
      if (!follows(which)) return;
    if (known_[0] == known_[1]) return;
    std::mt19937 random(std::random_device{}());
    for (int i = 0; i < kConfirmations; ++i)
      if (!follows(static_cast<int>(random() & 1))) return;
    size_t at = 0;
    while (known_[0][at] == known_[1][at]) ++at;
    fprintf(stderr, "kbench: outputs depend on memory that nobody wrote, from byte %zu on\n", at);
  }

 private:
  static constexpr int kConfirmations = 20;

  bool follows(int which) {
    Outputs found = call_(kPatterns[which]);
    if (known_[which].empty()) known_[which] = found;
    return known_[which] == found;
  }

  std::function<Outputs(int)> call_;
  Outputs known_[2];
};

#endif
