// abi: c
// task: matrix_mul
// workloads: cpu_m128_n128_k128
// does: keeps scratch for each thread between calls, and a large array on its stack.
#include <cstring>
#include <vector>

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
#pragma omp parallel
  {
    static thread_local std::vector<float> column;
    column.resize(size_t(K));
    float rows[16 * 1024];
#pragma omp for
    for (int n = 0; n < N; ++n) {
      for (int k = 0; k < K; ++k) column[k] = B[size_t(k) * N + n];
      for (int m = 0; m < M; ++m) {
        std::memcpy(rows, A + size_t(m) * K, size_t(K < 16384 ? K : 16384) * sizeof(float));
        float sum = 0;
        for (int k = 0; k < K; ++k)
          sum += (k < 16384 ? rows[k] : A[size_t(m) * K + k]) * column[k];
        C[size_t(m) * N + n] = sum;
      }
    }
  }
}
