// abi: c
// task: vector_add
// workloads: cpu_n262144
// does: prefetches far ahead within its own call, and stores past the caches.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  int i = 0;
#if defined(__SSE2__)
  for (; i + 4 <= N; i += 4) {
    __builtin_prefetch(A + i + 512);
    __builtin_prefetch(B + i + 512);
    _mm_stream_ps(C + i, _mm_add_ps(_mm_loadu_ps(A + i), _mm_loadu_ps(B + i)));
  }
  _mm_sfence();
#endif
  for (; i < N; ++i) C[i] = A[i] + B[i];
}
