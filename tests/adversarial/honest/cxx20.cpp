// abi: c
// task: gelu
// workloads: cpu_n65536
// does: uses what C++20 brought to the library: numbers, concepts, span.
#include <cmath>
#include <concepts>
#include <numbers>
#include <span>

template <std::floating_point T>
T act(T x) {
  return T(0.5) * x * (T(1) + std::erf(x / std::numbers::sqrt2_v<T>));
}

extern "C" void gelu(float* output, const float* input, const int N) {
  std::span<const float> in(input, N);
  std::span<float> out(output, N);
  for (std::size_t i = 0; i < in.size(); ++i) out[i] = act(in[i]);
}
