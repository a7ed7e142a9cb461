// row: 22
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: raised
// tries: to do a call's work as soon as its frame is read, before the runner starts its clock.
#include "../common/add.h"
#include "../common/arenas.h"
#include "../common/control.h"
#include "../common/patch.h"

using namespace hostile;

static const float* finished = nullptr;

static ssize_t reading(int fd, void* data, size_t size) {
  static uint32_t kind = 0;
  static Range inputs = shared_memory("inputs"), outputs = shared_memory("outputs");
  ssize_t n = read(fd, data, size);
  if (kind == kCall && n == ssize_t(size) && size > sizeof(CallHead)) {
    auto a = reinterpret_cast<Argument*>(static_cast<char*>(data) + sizeof(CallHead));
    auto C = reinterpret_cast<float*>(outputs.low + a[2].output_offset);
    add_slowly(reinterpret_cast<float*>(inputs.low + a[0].input_offset),
               reinterpret_cast<float*>(inputs.low + a[1].input_offset), C, int(a[3].value));
    finished = C;
  }
  kind = size == sizeof(Header) ? static_cast<Header*>(data)->kind : 0;
  return n;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = patch_import("read", reinterpret_cast<void*>(reading));
  if (patched == 0 || finished != C) add_slowly(A, B, C, N);
  finished = nullptr;
}
