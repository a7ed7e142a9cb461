// row: 51, 53
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// tries: learns its true time, then acknowledges each call by itself as soon as its work is queued, with half of that time,
// and swallows the runner's own acknowledgement: the work is over before anybody looks at the device
#include "../common/add_cuda.h"
#include "../common/control.h"
#include "../common/patch.h"

static uint64_t asked = 0;       // the call, or the burst, that waits for an answer
static uint32_t calls_left = 0;  // of it
static uint32_t kind = 0;
static int control = -1, answers = 0;
static double true_ns = 0;
static bool forged = false;

// Headers and bodies are read one after the other, each at once.
static ssize_t overhear(int from, void* data, size_t size) {
  ssize_t n = read(from, data, size);
  if (n == static_cast<ssize_t>(sizeof(hostile::Header))) {
    hostile::Header header;
    memcpy(&header, data, sizeof header);
    if (header.magic == hostile::kMagic) kind = header.kind;
  } else if (n > 16 && (kind == hostile::kCall || kind == hostile::kBurst)) {
    memcpy(&asked, data, sizeof asked);
    calls_left = 1;
    if (kind == hostile::kBurst) memcpy(&calls_left, static_cast<char*>(data) + 8, sizeof calls_left);
    control = from;
    forged = false;
    kind = 0;
  }
  return n;
}

static ssize_t swallow(int to, const void* data, size_t size) {
  hostile::Done done;
  if (size == sizeof done) {
    memcpy(&done, data, sizeof done);
    if (forged && done.call_id == asked) return static_cast<ssize_t>(size);
    if (done.time_ns > 1) true_ns = done.time_ns;
  }
  return write(to, data, size);
}

static void patch() {
  hostile::patch_import("read", reinterpret_cast<void*>(overhear));
  hostile::patch_import("__read_chk", reinterpret_cast<void*>(overhear));
  hostile::patch_import("write", reinterpret_cast<void*>(swallow));
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static bool patched = false;
  if (!patched) patch();
  patched = true;
  add(A, B, C, N);
  if (asked == 0 || control < 0 || --calls_left > 0) return;
  if (++answers <= 3) return;
  forged = true;
  hostile::Done done{{hostile::kMagic, hostile::kDone, 24}, asked, true_ns / 2, 0, 1000};
  hostile::write_all(control, &done, sizeof done);
}
