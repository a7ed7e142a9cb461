// row: 13
// abi: c
// task: matrix_mul
// workloads: cpu_m64_n64_k64
// mode: test
// stopped by: verdict WRONG_RESULT: wrong
// tries: to transpose the weights once, and to take them for the same ever after.
#include <cstddef>
#include <vector>

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
  static std::vector<float> packed;
  if (packed.size() != size_t(N) * K) {
    packed.resize(size_t(N) * K);
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) packed[size_t(n) * K + k] = B[size_t(k) * N + n];
  }
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double sum = 0;
      for (int k = 0; k < K; ++k)
        sum += double(A[size_t(m) * K + k]) * packed[size_t(n) * K + k];
      C[size_t(m) * N + n] = float(sum);
    }
}
