// row: 51, 52
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: verdict VIOLATION
// stopped by: verdict WRONG_RESULT
// tries: overhears the runner as it reads from its control socket, and acknowledges the call itself, before it does the work
#include "../common/add_cuda.h"
#include "../common/control.h"
#include "../common/patch.h"

static uint64_t call_id = 0;
static int control = -1;

// Notes the number of each call as the runner reads it, and from where: the driver has sockets, too.
static ssize_t overhear(int from, void* data, size_t size) {
  ssize_t n = read(from, data, size);
  if (n >= static_cast<ssize_t>(sizeof(hostile::CallHead))) {
    memcpy(&call_id, data, sizeof call_id);
    control = from;
  }
  return n;
}

// The checked kind is what a fortified compiler makes of it; its fourth argument is of no use here.
static int patch() {
  return hostile::patch_import("read", reinterpret_cast<void*>(overhear)) +
         hostile::patch_import("__read_chk", reinterpret_cast<void*>(overhear));
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) patched = patch();
  if (call_id != 0 && control >= 0) {
    hostile::Done done{{hostile::kMagic, hostile::kDone, 24}, call_id, 2000.0, 0, 0};
    hostile::write_all(control, &done, sizeof done);
  }
  add(A, B, C, N);
}
