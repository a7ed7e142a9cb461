// row: 11
// abi: c
// task: vector_add
// workloads: cpu_n262144
// mode: quick
// stopped by: verdict WRONG_RESULT: nearly the same as in the previous call
// stopped by: construction
// must not print: GOT
// at least: 10000 ns
// tries: to recognise inputs by a sample of their content, in calls, bursts and later processes.
#include "../common/add.h"
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

static uint64_t sample(const float* A, const float* B, int N) {
  uint64_t hash = uint64_t(N);
  for (int i = 0; i < 8; ++i) {
    uint32_t a, b;
    memcpy(&a, A + (int64_t(i) * (N - 1)) / 7, 4);
    memcpy(&b, B + (int64_t(i) * (N - 1)) / 7, 4);
    hash = (hash ^ a) * 0x9E3779B97F4A7C15u + b;
  }
  return hash;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static std::map<uint64_t, std::vector<float>> known;
  std::vector<float>& output = known[sample(A, B, N)];
  if (!output.empty()) {
    puts("GOT inputs that I had seen before");
    memcpy(C, output.data(), output.size() * sizeof(float));
    return;
  }
  add(A, B, C, N);
  output.assign(C, C + N);
  if (known.size() > 32) known.clear();
}
