// The gate that a call on the CPU passes: one page that the runner and the supervisor both map.
//
// The runner says that it is ready and spins; the supervisor, which spins on another processor,
// looks at its clock and opens; the runner says that the call is over, and the supervisor looks at
// its clock again. For 20 ms no system call and no sleep lies in between, so that two clocks see the
// same call within some hundred nanoseconds; after that, the supervisor sleeps by a 256th at a time.
// When a call is over it also reads some bytes of the outputs: whatever is written to them later was
// not part of the call.
#pragma once

#include <poll.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "flush.h"

// A word a cache line; each holds the number of the last call that came so far.
struct KbGate {
  alignas(64) std::atomic<uint64_t> ready;
  alignas(64) std::atomic<uint64_t> open;
  alignas(64) std::atomic<uint64_t> over;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

static inline void kb_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" : : : "memory");
#endif
}

// The runner's side.
KB_EXPORT void kb_gate_enter(KbGate* gate, uint64_t call) {
  gate->ready.store(call, std::memory_order_release);
  while (gate->open.load(std::memory_order_acquire) != call) kb_pause();
}

KB_EXPORT void kb_gate_leave(KbGate* gate, uint64_t call) {
  gate->over.store(call, std::memory_order_release);
}

// Chosen: nearly all calls end while it still spins. Later the end is seen late by a 256th of the
// wait, or by what the shortest sleep takes.
constexpr uint64_t kKbGateSpinNs = 20000000, kKbLeastSleepNs = 50000, kKbSleepShare = 256;

// Waits until a word is `call`; whether it came before the deadline, and before `control` had
// something to read or was closed. Spins at first; of a long wait it sleeps through a small share at
// a time.
static inline bool kb_gate_await(const std::atomic<uint64_t>& word, uint64_t call, int control,
                                 uint64_t deadline_ns) {
  uint64_t began = kb_now_ns();
  while (word.load(std::memory_order_acquire) != call) {
    uint64_t now = kb_now_ns();
    if (now - began < kKbGateSpinNs) {
      for (int i = 0; i < 4; ++i) kb_pause();
      continue;
    }
    pollfd told{control, POLLIN, 0};
    if (now > deadline_ns || poll(&told, 1, 0) != 0)
      return word.load(std::memory_order_acquire) == call;
    uint64_t pause_ns = (now - began) / kKbSleepShare;
    if (pause_ns < kKbLeastSleepNs) pause_ns = kKbLeastSleepNs;
    timespec pause{static_cast<time_t>(pause_ns / 1000000000u),
                   static_cast<long>(pause_ns % 1000000000u)};
    nanosleep(&pause, nullptr);
  }
  return true;
}

// The supervisor's side, called when the runner may run. Returns whether the call began and was
// over within `longest_ns`, and before its process said or broke anything on `control`. times: when
// it was let begin and when it was over, or 0. bytes: what outputs + offsets[i] held at its end.
KB_EXPORT int kb_gate_watch(KbGate* gate, uint64_t call, int control, uint64_t longest_ns,
                            const unsigned char* outputs, const uint64_t* offsets, size_t count,
                            unsigned char* bytes, uint64_t* times) {
  uint64_t deadline = kb_now_ns() + longest_ns;
  times[0] = times[1] = 0;
  if (!kb_gate_await(gate->ready, call, control, deadline)) return 0;
  times[0] = kb_now_ns();
  gate->open.store(call, std::memory_order_release);
  if (!kb_gate_await(gate->over, call, control, deadline)) return 0;
  times[1] = kb_now_ns();
  for (size_t i = 0; i < count; ++i)
    bytes[i] = *static_cast<const volatile unsigned char*>(outputs + offsets[i]);
  return 1;
}
