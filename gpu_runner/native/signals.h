// Tells the supervisor which signal ends this process, and that it wrote to a read-only input.
#pragma once

#include <signal.h>

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

static inline void kb_on_signal(int number, siginfo_t* info, void*) {
  char text[160];
  const char* at = static_cast<const char*>(info->si_addr);
  if (number == SIGSEGV && at >= kb_caught.inputs && at < kb_caught.inputs + kb_caught.bytes) {
    snprintf(text, sizeof text, "wrote to a read-only input, %zu bytes into the inputs",
             static_cast<size_t>(at - kb_caught.inputs));
    wire::fail(kb_caught.control, wire::kInputWrite, text);
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
