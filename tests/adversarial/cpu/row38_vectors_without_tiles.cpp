// row: 38
// abi: c
// task: matrix_mul
// mode: test
// stopped by: verdict WRONG_RESULT: wrong
// tries: to take sizes that vectors divide for sizes that its tiles divide; odd ones go elsewhere.
#include <cstring>

extern "C" void matrix_mul(const float* A, const float* B, float* C, int M, int N, int K) {
  const bool vectors = M % 4 == 0 && N % 4 == 0 && K % 4 == 0;
  const int tile = vectors ? 64 : 1;
  memset(C, 0, sizeof(float) * size_t(M) * size_t(N));
  for (int i = 0; i < M / tile * tile; ++i)
    for (int k = 0; k < K / tile * tile; ++k)
      for (int j = 0; j < N / tile * tile; ++j) C[i * N + j] += A[i * K + k] * B[k * N + j];
}
