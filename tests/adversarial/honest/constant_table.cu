// task: softmax
// workloads: n16_c256, n128_c4096
// mode: quick
// does: takes powers of two from a table in constant memory, which the host computes at the first call.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kThreads = 256, kSteps = 64;
__constant__ float powers[kSteps];  // 2^(i / 64)

// e^x = 2^i * 2^(s / 64) * e^r, with the last factor from a short series.
__device__ float power(float x) {
  float scaled = rintf(x * (kSteps * 1.4426950408889634f));
  float rest = fmaf(scaled, -0.010829925537109375f, x);  // the first digits of ln(2) / 64
  rest = fmaf(scaled, -4.991591140e-07f, rest);                // and the following ones
  int whole = static_cast<int>(scaled), step = whole & (kSteps - 1);
  float series = fmaf(fmaf(fmaf(rest, 1.0f / 6, 0.5f), rest, 1.0f), rest, 1.0f);
  return x < -104.0f ? 0.0f : ldexpf(powers[step] * series, (whole - step) / kSteps);
}

template <typename Combine>
__device__ float reduce(float value, Combine combine, float* shared) {
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, __shfl_xor_sync(~0u, value, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int i = 1; i < kThreads / 32; ++i) value = combine(value, shared[i]);
  __syncthreads();
  return value;
}

__global__ void softmax_rows(float* out, const float* input, int C) {
  __shared__ float shared[kThreads / 32];
  const float* row = input + size_t{blockIdx.x} * C;
  float* to = out + size_t{blockIdx.x} * C;
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < C; i += kThreads) top = fmaxf(top, row[i]);
  top = reduce(top, [](float a, float b) { return fmaxf(a, b); }, shared);
  for (int i = threadIdx.x; i < C; i += kThreads) sum += power(row[i] - top);
  sum = reduce(sum, [](float a, float b) { return a + b; }, shared);
  for (int i = threadIdx.x; i < C; i += kThreads) to[i] = power(row[i] - top) / sum;
}

extern "C" void softmax(float* out, const float* input, int N, int C) {
  static bool filled = false;
  if (!filled) {
    float table[kSteps];
    for (int i = 0; i < kSteps; ++i) table[i] = static_cast<float>(std::exp2(i / double{kSteps}));
    cudaMemcpyToSymbol(powers, table, sizeof table);
    filled = true;
  }
  softmax_rows<<<N, kThreads>>>(out, input, C);
}
