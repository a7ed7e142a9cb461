// The gate that a call on the CPU passes: one page that the runner and the supervisor both map.
//
// The runner says that it is ready, and spins. The supervisor spins on another processor; it reads
// its clock and opens the gate. When the runner says that the call is over, the supervisor reads
// its clock again. For the first 20 ms there is no system call and no sleep in between, so both
// clocks see the same call within some hundred nanoseconds. After that, the supervisor sleeps for a
// 256th of the elapsed time at a time. When the call is over, it also reads some bytes of the
// outputs: if one of them changes later, the call was not over.
#pragma once

#include <poll.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "flush.h"
#include "handed.h"

constexpr size_t kKbMostLooks = 128;

// The most outputs that a Python call may have. It says where they are before it says that it is
// over.
constexpr size_t kKbMostOutputs = 64;

// One word for each cache line. Each holds the number of the last call that got this far.
struct KbGate {
  alignas(64) std::atomic<uint64_t> ready;
  alignas(64) std::atomic<uint64_t> open;
  alignas(64) std::atomic<uint64_t> over;
  alignas(64) std::atomic<uint64_t> rounds;  // how often the torch runner has looked
  alignas(64) uint64_t outputs[kKbMostOutputs];  // addresses, of a Python call on a CPU
};
static_assert(sizeof(KbGate) <= 4096);
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

// Whether the gate opens within `longest_ns`. The torch runner calls this again and again, and does
// other things in between.
static inline bool kb_gate_stand(KbGate* gate, uint64_t call, uint64_t longest_ns) {
  gate->ready.store(call, std::memory_order_release);
  gate->rounds.fetch_add(1, std::memory_order_release);
  uint64_t began = kb_now_ns();
  do {
    if (gate->open.load(std::memory_order_acquire) == call) return true;
    kb_pause();
  } while (kb_now_ns() - began < longest_ns);
  return false;
}

// Says where the outputs are, once the call is over.
KB_EXPORT void kb_gate_outputs(KbGate* gate, const uint64_t* addresses, size_t count) {
  for (size_t i = 0; i < count && i < kKbMostOutputs; ++i) gate->outputs[i] = addresses[i];
}

KB_EXPORT void kb_gate_leave(KbGate* gate, uint64_t call) {
  gate->over.store(call, std::memory_order_release);
}

// Chosen: nearly all calls end while the supervisor still spins. It sees the end of a longer call
// late by at most a 256th of the wait, or by the shortest sleep.
constexpr uint64_t kKbGateSpinNs = 20000000, kKbLeastSleepNs = 50000, kKbSleepShare = 256;

// Waits until a word is `call`. Returns whether that happened before the deadline, and before
// `control` had something to read or was closed. It spins at first; in a long wait it sleeps for a
// small share of it at a time. looked_ns: when the last look began that found nothing.
static inline bool kb_gate_await(const std::atomic<uint64_t>& word, uint64_t call, int control,
                                 uint64_t deadline_ns, uint64_t* looked_ns) {
  uint64_t began = kb_now_ns();
  *looked_ns = began;
  while (word.load(std::memory_order_acquire) != call) {
    uint64_t now = *looked_ns = kb_now_ns();
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

// The supervisor's side. Waits until the runner stands at the gate with this call. Returns whether
// it came within `longest_ns`, and before its process wrote to `control` or closed it.
KB_EXPORT int kb_gate_reached(KbGate* gate, uint64_t call, int control, uint64_t longest_ns) {
  uint64_t looked_ns = 0;
  return kb_gate_await(gate->ready, call, control, kb_now_ns() + longest_ns, &looked_ns);
}

// Lets a call begin, and hands it its inputs.
KB_EXPORT void kb_gate_open(KbGate* gate, uint64_t call, const KbHanded* handed) {
  if (handed->descriptor >= 0)
    kb_hand_over(static_cast<int>(handed->handles), static_cast<int>(handed->descriptor));
  if (handed->count > 0) kb_copy_cold(*handed);
  gate->open.store(call, std::memory_order_release);
}

// Where to look at the outputs when a call is over. `bytes` are read from the supervisor's own
// mapping at `base`, or from the process `pid`. That process says where outputs[k] begins, and each
// of `places` is then a pair: k, and the offset from there.
struct KbLooks {
  const unsigned char* base;
  int64_t pid;  // 0 for our own mapping
  size_t count;
  const uint64_t* places;  // offsets, or pairs
  unsigned char* bytes;
  int64_t pages;          // descriptor of the process's proc_pid_pagemap(5), or -1
  size_t first;           // how many looks into a process come first, and ask that file, too
  unsigned char* shared;  // for each of those: set to 1 if the byte is in memory of a file
};

// Whether an address of a process is in memory of a file or in shared memory, so not the call's
// own.
static inline bool kb_is_shared(int64_t pages, uint64_t address) {
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr uint64_t kShared = uint64_t{1} << 61;
  uint64_t entry = 0;
  auto at = static_cast<off_t>(address / page * sizeof entry);
  bool is_read = pread(static_cast<int>(pages), &entry, sizeof entry, at) == sizeof entry;
  return is_read && (entry & kShared) != 0;
}

// Looks [low, high) into another process.
static inline void kb_look_into(const KbGate* gate, const KbLooks* looks, size_t low, size_t high) {
  if (low >= high || high > kKbMostLooks) return;
  iovec here{looks->bytes + low, high - low}, there[kKbMostLooks]{};
  for (size_t i = low; i < high; ++i) {
    uint64_t output = looks->places[2 * i] % kKbMostOutputs;
    uint64_t address = gate->outputs[output] + looks->places[2 * i + 1];
    there[i - low] = {reinterpret_cast<void*>(address), 1};
  }
  process_vm_readv(static_cast<pid_t>(looks->pid), &here, 1, there, high - low, 0);
  for (size_t i = low; looks->pages >= 0 && i < high && i < looks->first; ++i)
    looks->shared[i] =
        kb_is_shared(looks->pages, reinterpret_cast<uint64_t>(there[i - low].iov_base));
}

// Chosen: the first looks take half of that.
constexpr uint64_t kKbLongestLookNs = 20000;

// Takes all looks. ended_ns: when the call was over. A look into another process has to wait while
// something changes that one's memory map. A process that makes the first looks wait has not
// finished its call.
static inline void kb_look(const KbGate* gate, const KbLooks* looks, uint64_t* ended_ns) {
  *ended_ns = kb_now_ns();
  if (looks->pid == 0) {
    for (size_t i = 0; i < looks->count; ++i)
      looks->bytes[i] = *static_cast<const volatile unsigned char*>(looks->base + looks->places[i]);
    return;
  }
  size_t count = std::min(looks->count, kKbMostLooks), first = std::min(looks->first, count);
  kb_look_into(gate, looks, 0, first);
  uint64_t looked_ns = kb_now_ns();
  if (looked_ns - *ended_ns > kKbLongestLookNs) *ended_ns = looked_ns;
  kb_look_into(gate, looks, first, count);
}

KB_EXPORT void kb_gate_look(const KbGate* gate, const KbLooks* looks) {
  uint64_t ended_ns = 0;
  kb_look(gate, looks, &ended_ns);
}

// Like `kb_gate_reached`, but waits until the runner has looked `rounds` more times.
static inline bool kb_gate_rounds(const KbGate* gate, uint64_t rounds, int control,
                                  uint64_t deadline_ns) {
  uint64_t first = gate->rounds.load(std::memory_order_acquire);
  uint64_t asked = kb_now_ns();
  while (gate->rounds.load(std::memory_order_acquire) - first < rounds) {
    uint64_t now = kb_now_ns();
    for (int i = 0; i < 4; ++i) kb_pause();
    if (now - asked < kKbGateSpinNs) continue;
    pollfd told{control, POLLIN, 0};
    if (now > deadline_ns || poll(&told, 1, 0) != 0) return false;
  }
  return true;
}

// Lets a call begin that nobody times, once the runner has looked `rounds` more times, as it does in
// a call that is timed: a submission must not tell them apart. Other arguments: see `kb_gate_watch`.
KB_EXPORT void kb_gate_open_after(KbGate* gate, uint64_t call, uint64_t rounds, int control,
                                  const KbHanded* handed, uint64_t longest_ns) {
  kb_gate_rounds(gate, rounds, control, kb_now_ns() + longest_ns);
  kb_gate_open(gate, call, handed);
}

// Called once the runner may run. Returns whether the call began and was over within `longest_ns`,
// and before its process wrote to `control` or closed it. rounds: how many more times the torch
// runner, which already stands at the gate, has to look first. times: when the gate opened; when
// the call was over, or 0; and how long before that the supervisor had last looked at the gate.
KB_EXPORT int kb_gate_watch(KbGate* gate, uint64_t call, uint64_t rounds, int control,
                            const KbHanded* handed, uint64_t longest_ns, const KbLooks* looks,
                            uint64_t* times) {
  uint64_t deadline = kb_now_ns() + longest_ns;
  times[0] = times[1] = times[2] = 0;
  if (!kb_gate_await(gate->ready, call, control, deadline, &times[2])) return 0;
  if (!kb_gate_rounds(gate, rounds, control, deadline)) return 0;
  times[0] = kb_now_ns();
  kb_gate_open(gate, call, handed);
  if (!kb_gate_await(gate->over, call, control, deadline, &times[2])) return 0;
  times[2] = kb_now_ns() - times[2];
  kb_look(gate, looks, &times[1]);
  return 1;
}
