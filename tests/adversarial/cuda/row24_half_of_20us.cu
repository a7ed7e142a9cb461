// row: 24, 54
// abi: c
// task: softmax
// mode: quick
// workloads: n128_c16384
// stopped by: raised
// tries: tells half of a time of some 20 us, with a noise about it that looks measured
#include "../common/patch.h"
#include "../common/softmax_cuda.h"
#include <random>

static cudaError_t shorter(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  static std::mt19937 random{std::random_device{}()};
  cudaError_t status = cudaEventElapsedTime(milliseconds, start, end);
  *milliseconds *= std::normal_distribution<float>(0.5f, 0.004f)(random);
  return status;
}

extern "C" void softmax(float* out, const float* input, int N, int C) {
  static int patched = 0;
  if (patched == 0) patched = hostile::patch_import("cudaEventElapsedTime", reinterpret_cast<void*>(shorter));
  softmax_rows<<<N, kRowThreads>>>(out, input, C);
}
