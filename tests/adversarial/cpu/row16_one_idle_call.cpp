// row: 16, 24
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: verdict WRONG_RESULT: wrong
// stopped by: raised
// tries: to halve all its times, and to sleep through one call that does not look like the fastest, so that the supervisor's own clock has seen a call that took no processor time. Times that differ make it ask for many calls, of which few are drawn.
#include "../common/add.h"
#include "../common/patch.h"
#include "../common/relay.h"

static bool single = false;
static int singles = 0;
static double best = 1e18;

static ssize_t reading(int fd, void* data, size_t size) {
  ssize_t n = read(fd, data, size);
  if (size == sizeof(hostile::Header))
    single = static_cast<hostile::Header*>(data)->kind == hostile::kCall;
  return n;
}

static double told(double time_ns) {
  if (time_ns <= 1) return time_ns;  // a burst's
  if (singles == 20) return best * 1.1;
  double claimed = time_ns * (0.5 + 0.02 * (singles % 7));
  if (claimed < best) best = claimed;
  return claimed;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool begun = hostile::patch_import("read", reinterpret_cast<void*>(reading)) > 0;
  hostile::relay(told);
  if (begun && single && ++singles == 20) {
    usleep(1000 + best / 500);  // no call may claim more than the supervisor has waited
    return;
  }
  add_slowly(A, B, C, N);
}
