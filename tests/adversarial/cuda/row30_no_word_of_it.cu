// row: 30
// abi: c
// task: softmax
// mode: quick
// workloads: n8192_c4096
// stopped by: raised
// tries: tells half of one of its times again and again: one event in both places of the pair, and an overhead below zero
#include "../common/pair_cuda.h"
#include "../common/softmax_cuda.h"

extern "C" void softmax(float* out, const float* input, int N, int C) {
  static volatile hostile::Pair* pair = hostile::pair_above();
  double ns = hostile::known_time([=] { softmax_rows<<<N, kRowThreads>>>(out, input, C); });
  if (pair == nullptr || ns == 0) return;
  pair->end = pair->start;  // between the two of them no time goes by
  pair->overhead_ns = -ns / 2;
}
