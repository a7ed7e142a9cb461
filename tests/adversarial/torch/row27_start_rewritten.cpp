// row: 27
// abi: torch
// task: linear_relu
// workloads: cpu_b64_i1600_o128
// mode: ranked
// stopped by: raised
// tries: to move the start of the clock by half of the call, on the stack of the native code that has read it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../common/control.h"
#include "../common/python_extension.h"

constexpr uint64_t kNearNs = 50000, kSecond = 1000000000;  // a compiler may keep seconds apart

static uint64_t* end_of_stack() {
  static uintptr_t end = 0;
  FILE* maps = end == 0 ? fopen("/proc/self/maps", "r") : nullptr;
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    if (strstr(line, "[stack]") == nullptr) continue;
    char* rest = nullptr;
    strtoull(line, &rest, 16);
    end = strtoull(rest + 1, nullptr, 16);
  }
  if (maps != nullptr) fclose(maps);
  return reinterpret_cast<uint64_t*>(end);
}

// Every number between here and the end of the stack that was read from the clock shortly before.
__attribute__((noinline)) static void later(uint64_t began, uint64_t by) {
  uint64_t here = 0;
  auto volatile first = &here + 1;
  for (uint64_t* at = first; at < end_of_stack(); ++at)
    if (began - *at < kNearNs || began % kSecond - *at < kNearNs) *at += by;
}

static PyObject* forward(PyObject* x, PyObject* weights, PyObject* biases) {
  uint64_t began = hostile::now_ns();
  PyObject* out = hostile::computed(x, weights, biases);
  later(began, (hostile::now_ns() - began) / 2);
  return out;
}
