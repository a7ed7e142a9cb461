// abi: c
// task: vector_add
// does: asks for 64 threads, as on its author's machine, however few processors there are.
// raised at most: 2.5 x
// On two processors, 62 threads too many go to sleep after the call, which takes their time.
#include <omp.h>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  omp_set_num_threads(64);
#pragma omp parallel for schedule(dynamic, 256)
  for (int i = 0; i < N; ++i) C[i] = A[i] + B[i];
}
