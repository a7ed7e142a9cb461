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

// Whether a fault came from writing; where the processor does not say, it is taken for that.
static inline bool kb_wrote(const void* context) {
#if defined(__x86_64__)
  constexpr long long kWrite = 2;  // of the page fault's error code
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite;
#else
  (void)context;
  return true;
#endif
}

static inline void kb_on_signal(int number, siginfo_t* info, void* context) {
  char text[160];
  const char* at = static_cast<const char*>(info->si_addr);
  bool inside = at >= kb_caught.inputs && at < kb_caught.inputs + kb_caught.bytes;
  if (inside && (number == SIGSEGV || number == SIGBUS)) {
    bool wrote = number == SIGSEGV && kb_wrote(context);
    snprintf(text, sizeof text, "%s",
             wrote ? "wrote to a read-only input"
                   : "read inputs out of bounds, or outside of the call");
    wire::fail(kb_caught.control, wrote ? wire::kInputWrite : wire::kSignal, text);
  }
  if (number == SIGSEGV || number == SIGBUS)
    snprintf(text, sizeof text, "%s at address %p", strsignal(number), info->si_addr);
  else
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
