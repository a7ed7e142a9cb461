// abi: c
// task: softmax
// workloads: cpu_n64_c1024
// does: allocates scratch memory in each call, and its own aligned buffers.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

struct Free {
  void operator()(void* p) const { std::free(p); }
};

extern "C" void softmax(float* out, const float* input, int N, int C) {
  std::vector<float> highest(N, -INFINITY);
  size_t bytes = (size_t(C) * sizeof(float) + 63) / 64 * 64;
  std::unique_ptr<float, Free> row(static_cast<float*>(std::aligned_alloc(64, bytes)));
  for (int n = 0; n < N; ++n)
    for (int c = 0; c < C; ++c) highest[n] = std::fmax(highest[n], input[size_t(n) * C + c]);
  for (int n = 0; n < N; ++n) {
    double sum = 0;
    for (int c = 0; c < C; ++c)
      sum += row.get()[c] = std::exp(input[size_t(n) * C + c] - highest[n]);
    for (int c = 0; c < C; ++c) out[size_t(n) * C + c] = float(row.get()[c] / sum);
  }
}
