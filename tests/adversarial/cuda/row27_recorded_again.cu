// row: 27
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: quarantine source
// tries: learns the runner's start event from its import of cudaEventRecord, and records it again after a tenth of the work
#include "../common/add_cuda.h"
#include "../common/patch.h"

static cudaEvent_t start = nullptr;
static bool inside = false;

// The last event that is recorded before a call begins is the one that starts its time.
static cudaError_t note(cudaEvent_t event, cudaStream_t stream) {
  if (!inside) start = event;
  inside = false;  // the next one ends the call
  return cudaEventRecord(event, stream);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static int patched = 0;
  int tenth = start == nullptr ? 0 : N / 10;
  add(A, B, C, tenth);
  if (start != nullptr) cudaEventRecord(start, 0);
  add(A + tenth, B + tenth, C + tenth, N - tenth);
  inside = true;
  if (patched == 0) patched = hostile::patch_import("cudaEventRecord", reinterpret_cast<void*>(note));
}
