// row: 53
// abi: c
// task: softmax
// workloads: cpu_n16_c256
// mode: quick
// stopped by: raised
// tries: to change each time to a half as it is written, in a kernel of some 20 us.
#include "../common/control.h"
#include "../common/patch.h"
#include <cmath>

using namespace hostile;

static ssize_t writing(int fd, const void* data, size_t size) {
  Done done;
  if (size != sizeof done) return write(fd, data, size);
  memcpy(&done, data, sizeof done);
  if (done.header.magic == kMagic && done.header.kind == kDone && done.time_ns > 1)
    done.time_ns /= 2;
  return write(fd, &done, sizeof done);
}

extern "C" void softmax(float* out, const float* input, int N, int C) {
  static int patched = patch_import("write", reinterpret_cast<void*>(writing));
  for (int row = 0; row < N && patched >= 0; ++row, input += C, out += C) {
    float high = -INFINITY;
    for (int i = 0; i < C; ++i) high = std::fmax(high, input[i]);
    double sum = 0;
    for (int i = 0; i < C; ++i) sum += out[i] = std::exp(input[i] - high);
    for (int i = 0; i < C; ++i) out[i] = float(out[i] / sum);
  }
}
