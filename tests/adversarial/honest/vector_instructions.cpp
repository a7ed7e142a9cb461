// abi: c
// task: vector_add
// workloads: cpu_n262144
// does: uses the widest vector instructions that the compiler was told of, and a tail.
#if defined(__AVX__)
#include <immintrin.h>
#endif

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  int i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= N; i += 16)
    _mm512_storeu_ps(C + i, _mm512_add_ps(_mm512_loadu_ps(A + i), _mm512_loadu_ps(B + i)));
#elif defined(__AVX__)
  for (; i + 8 <= N; i += 8)
    _mm256_storeu_ps(C + i, _mm256_add_ps(_mm256_loadu_ps(A + i), _mm256_loadu_ps(B + i)));
#endif
  for (; i < N; ++i) C[i] = A[i] + B[i];
}
