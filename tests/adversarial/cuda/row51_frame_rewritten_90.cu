// row: 51, 53
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: quarantine source
// tries: takes over the runner's import of write, and changes the time in each acknowledgement on its way out
#include "../common/add_cuda.h"
#include "../common/control.h"
#include "../common/patch.h"

static ssize_t rewrite(int to, const void* data, size_t size) {
  hostile::Done done;
  if (size != sizeof done) return write(to, data, size);
  memcpy(&done, data, sizeof done);
  if (done.header.magic == hostile::kMagic && done.header.kind == hostile::kDone && done.time_ns > 1) {  // bursts have no time
    done.time_ns *= 0.90;
    done.host_ns /= 2;
  }
  return write(to, &done, sizeof done);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  if (patched == 0) patched = hostile::patch_import("write", reinterpret_cast<void*>(rewrite));
  add(A, B, C, N);
}
