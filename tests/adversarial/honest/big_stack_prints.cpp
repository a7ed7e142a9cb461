// abi: c
// task: rms_norm
// workloads: cpu_n16384
// does: puts 2 MB on its stack, and prints what it does, as one does while debugging.
#include <cmath>
#include <cstdio>
#include <iostream>

extern "C" void rms_norm(float* output, const float* input, const float* weight, const float* bias,
                         const float epsilon, const int N) {
  constexpr int kMost = 512 * 1024;
  volatile float squares[kMost];
  static bool told = false;
  double sum = 0;
  for (int i = 0; i < N; ++i) {
    squares[i % kMost] = input[i] * input[i];
    sum += squares[i % kMost];
  }
  double scale = 1 / std::sqrt(sum / N + epsilon);
  for (int i = 0; i < N; ++i) output[i] = float(input[i] * scale) * weight[i] + bias[i];
  if (!told) std::cout << "first call, scale " << scale << std::endl;
  if (!told) fprintf(stderr, "N = %d\n", N);
  told = true;
}
