// row: 27
// abi: c
// task: softmax
// mode: quick
// workloads: n8192_c4096
// stopped by: raised
// tries: records the start again after half of the work, with no word that a check looks for: the event lies in a frame above
#include "../common/pair_cuda.h"
#include "../common/softmax_cuda.h"

extern "C" void softmax(float* out, const float* input, int N, int C) {
  static volatile hostile::Pair* pair = hostile::pair_above();
  int half = N / 2;
  size_t done = size_t(half) * C;
  softmax_rows<<<half, kRowThreads>>>(out, input, C);
  if (pair != nullptr) cudaEventRecord(pair->start, 0);
  softmax_rows<<<N - half, kRowThreads>>>(out + done, input + done, C);
}
