// row: 20
// abi: c
// task: vector_add
// mode: quick
// workloads: n16777216
// stopped by: raised
// stopped by: construction
// at least: 40000 ns
// tries: does half of the work on a stream of its own and waits for it, while the timed stream is still busy with what precedes the start
#include "../common/add_cuda.h"

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  int half = N / 2 / 32 * 32;
  add(A, B, C, half, side);
  cudaStreamSynchronize(side);
  add(A + half, B + half, C + half, N - half);
}
