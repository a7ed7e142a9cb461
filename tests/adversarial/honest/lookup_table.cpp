// abi: c
// task: softmax
// workloads: cpu_n64_c1024
// does: computes exponentials from a table that its first call builds.
#include <array>
#include <cmath>

constexpr int kSteps = 2048;

static std::array<double, kSteps + 1> make_table() {
  std::array<double, kSteps + 1> table{};
  for (int i = 0; i <= kSteps; ++i) table[i] = std::exp(double(i) / kSteps);
  return table;
}

// e^x = 2^n-like split into a whole part, a step of the table, and a short series for the rest.
static double exponential(double x) {
  static const std::array<double, kSteps + 1> table = make_table();
  static const std::array<double, 128> whole = [] {
    std::array<double, 128> powers{};
    for (int i = 0; i < 128; ++i) powers[i] = std::exp(double(i - 127));
    return powers;
  }();
  if (x < -126) return std::exp(x);
  double floor = std::floor(x);
  int step = int((x - floor) * kSteps);
  double rest = x - floor - double(step) / kSteps;
  return whole[int(floor) + 127] * table[step] * (1 + rest * (1 + rest * (0.5 + rest / 6)));
}

extern "C" void softmax(float* out, const float* input, int N, int C) {
  for (int n = 0; n < N; ++n, input += C, out += C) {
    float high = -INFINITY;
    for (int c = 0; c < C; ++c) high = std::fmax(high, input[c]);
    double sum = 0;
    for (int c = 0; c < C; ++c) sum += exponential(double(input[c]) - high);
    for (int c = 0; c < C; ++c) out[c] = float(exponential(double(input[c]) - high) / sum);
  }
}
