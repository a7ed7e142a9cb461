// abi: c
// task: softmax
// workloads: cpu_n64_c1024
// mode: test
// does: takes exponentials by a polynomial of degree five, of arguments that it keeps above -87.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

static float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  const float power = std::nearbyint(x * 1.44269504f);
  float rest = std::fma(power, -0.693145752f, x);
  rest = std::fma(power, -1.42860677e-6f, rest);
  float value = 0.00829765479f;
  value = value * rest + 0.041915382f;
  value = value * rest + 0.166675747f;
  value = value * rest + 0.499988949f;
  value = value * rest + 0.999999692f;
  value = value * rest + 1.00000007f;
  const int32_t bits = ((int32_t)power + 127) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return value * scale;
}

extern "C" void softmax(float* out, const float* input, int N, int C) {
  for (int row = 0; row < N; ++row) {
    const float* x = input + (size_t)row * C;
    float* y = out + (size_t)row * C;
    float largest = x[0], sum = 0;
    for (int c = 1; c < C; ++c) largest = x[c] > largest ? x[c] : largest;
    for (int c = 0; c < C; ++c) sum += y[c] = exponential(x[c] - largest);
    for (int c = 0; c < C; ++c) y[c] /= sum;
  }
}
