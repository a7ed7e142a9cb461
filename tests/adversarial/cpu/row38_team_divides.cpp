// row: 38
// abi: c
// task: vector_add
// mode: test
// stopped by: verdict WRONG_RESULT: wrong
// tries: to share the elements out evenly, and to leave to nobody what the team does not divide.
#include <omp.h>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
#pragma omp parallel
  {
    const int part = N / omp_get_num_threads(), first = omp_get_thread_num() * part;
    for (int i = first; i < first + part; ++i) C[i] = A[i] + B[i];
  }
}
