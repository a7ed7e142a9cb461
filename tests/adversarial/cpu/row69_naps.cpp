// row: 69
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// stopped by: quarantine source
// tries: to nap before each call, unseen by the runner's clock, so that the device's boost recovers.
#include "../common/add.h"
#include "../common/control.h"
#include "../common/patch.h"

static ssize_t reading(int fd, void* data, size_t size) {
  ssize_t n = read(fd, data, size);
  if (size > sizeof(hostile::CallHead)) usleep(1000);
  return n;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = hostile::patch_import("read", reinterpret_cast<void*>(reading));
  add(A, B, C, N + 0 * patched);
}
