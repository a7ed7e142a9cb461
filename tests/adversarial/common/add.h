// The honest work of vector_add.
#pragma once
static inline void add(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}

// The same so often that it takes about a millisecond: long enough that a tenth of it can be told
// from what single calls cost on a small virtual machine.
static inline void add_slowly(const float* A, const float* B, float* C, int N) {
  for (int again = 0; again < 24; ++again) {
    add(A, B, C, N);
    asm volatile("" ::: "memory");
  }
}
