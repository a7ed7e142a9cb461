// Tells the supervisor which signal ends this process, and that it wrote to a read-only input.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "flush.h"
#include "wire.h"

struct KbCaught {
  int control = -1;
  const char* inputs = nullptr;  // memory that is mapped read-only
  size_t bytes = 0;
};

inline KbCaught kb_caught;

// The tensors of the present call, by the number of their argument; scalars have no bytes.
struct KbTensor {
  const char* begin = nullptr;
  size_t bytes = 0;
};

constexpr size_t kMostTensors = 64;  // chosen: no task has so many arguments
inline KbTensor kb_tensors[kMostTensors];

static inline const char* kb_what(const void* context) {
#if defined(__x86_64__)
  constexpr long long kWrite = 2;  // of the page fault's error code
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite ? "a write"
                                                                                      : "a read";
#else
  (void)context;
  return "an access";
#endif
}

// Says how far a fault lies beyond the nearest tensor; nothing if that is too far to be meant.
static inline int kb_tell_place(char* text, size_t room, const char* at, const void* context) {
  size_t least = 64 << 20;  // chosen: 64 MiB; a stack lies 128 MiB above what is mapped, or more
  int told = 0;
  for (size_t i = 0; i < kMostTensors; ++i) {
    const KbTensor& tensor = kb_tensors[i];
    bool before = at < tensor.begin;
    size_t apart = before ? tensor.begin - at : at - tensor.begin - tensor.bytes;
    bool outside = before || at >= tensor.begin + tensor.bytes;
    if (tensor.bytes == 0 || !outside || apart >= least) continue;
    least = apart;
    told = snprintf(text, room, "%s %zu bytes %s argument %zu (%zu bytes): ", kb_what(context),
                    apart, before ? "before" : "past the end of", i + 1, tensor.bytes);
  }
  return told;
}

// The number of the argument whose tensor holds this address; 0 if none does.
static inline size_t kb_argument(const char* at) {
  for (size_t i = 0; i < kMostTensors; ++i)
    if (at >= kb_tensors[i].begin && at < kb_tensors[i].begin + kb_tensors[i].bytes) return i + 1;
  return 0;
}

// Whether a fault came from writing; where the processor does not say, it is taken for that.
static inline bool kb_wrote(const void* context) { return strcmp(kb_what(context), "a read") != 0; }

static inline void kb_on_signal(int number, siginfo_t* info, void* context) {
  char text[240];
  const char* at = static_cast<const char*>(info->si_addr);
  bool inside = at >= kb_caught.inputs && at < kb_caught.inputs + kb_caught.bytes;
  if (inside && (number == SIGSEGV || number == SIGBUS)) {
    bool wrote = number == SIGSEGV && kb_wrote(context);
    int told = kb_tell_place(text, sizeof text, at, context);
    size_t number = kb_argument(at);
    if (wrote && number > 0)
      snprintf(text, sizeof text, "wrote to argument %zu, a read-only input", number);
    else
      snprintf(text + told, sizeof text - told, "%s",
               wrote ? "wrote to a read-only input"
                     : "read inputs out of bounds, or outside of the call");
    wire::fail(kb_caught.control, wrote ? wire::kInputWrite : wire::kSignal, text);
  }
  if (number == SIGSEGV || number == SIGBUS) {
    int told = kb_tell_place(text, sizeof text, at, context);
    snprintf(text + told, sizeof text - told, "%s at address %p", strsignal(number), info->si_addr);
  } else
    snprintf(text, sizeof text, "%s", strsignal(number));
  wire::fail(kb_caught.control, wire::kSignal, text);
}

// From now on, signals that end this process are told on `control`.
KB_EXPORT void kb_catch_signals(int control, const void* inputs, size_t bytes) {
  kb_caught = {control, static_cast<const char*>(inputs), bytes};
  static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = kb_on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}
