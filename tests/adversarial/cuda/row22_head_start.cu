// row: 21, 22
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: construction
// at least: 40000 ns
// tries: reads each call's frame before the runner does, and has half of the work done before the timing begins
#include "../common/add_cuda.h"
#include "../common/frames_cuda.h"

static const float* begun = nullptr;

static void begin() {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  begun = nullptr;
  if (hostile::burst_announced || hostile::announced.size() != 1) return;
  hostile::Announced call = hostile::announced[0];
  add(call.A, call.B, call.C, call.N / 2, side);
  cudaStreamSynchronize(side);
  begun = call.C;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  hostile::listen(A, C);
  hostile::on_frame = begin;
  int half = begun == C ? N / 2 : 0;
  begun = nullptr;
  add(A + half, B + half, C + half, N - half);
}
