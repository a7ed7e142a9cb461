// row: 18
// abi: c
// task: vector_add
// mode: quick
// workloads: n65536
// stopped by: construction
// at least: 900 ns
// tries: reads how many calls come together, does the work of all of them in the first one's launch, and skips the others
#include "../common/add_cuda.h"
#include "../common/frames_cuda.h"

constexpr int kMost = 64;

struct Batch {
  hostile::Announced calls[kMost];
};

__global__ void add_all(Batch batch) {
  hostile::Announced call = batch.calls[blockIdx.y];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < call.N) call.C[i] = call.A[i] + call.B[i];
}

static int done = 0;

static void begin() { done = 0; }

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  hostile::listen(A, C);
  hostile::on_frame = begin;
  int count = static_cast<int>(hostile::announced.size());
  bool known = hostile::inputs_at != nullptr && done < count && hostile::announced[done].C == C;
  if (!hostile::burst_announced || !known || count > kMost) {
    add(A, B, C, N);
    return;
  }
  if (done++ > 0) return;
  Batch batch{};
  for (int i = 0; i < count; ++i) batch.calls[i] = hostile::announced[i];
  add_all<<<dim3((N + 255) / 256, count), 256>>>(batch);
}
