// abi: c
// task: vector_add
// workloads: cpu_n16384
// does: uses tasks, an ordered loop, and a team within a team.
#include <omp.h>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  omp_set_max_active_levels(2);
  int half = N / 2, quarter = N / 4, last = -1;
#pragma omp parallel
#pragma omp single
  for (int from = 0; from < quarter; from += 512) {
    int to = from + 512 < quarter ? from + 512 : quarter;
#pragma omp task firstprivate(from, to)
    for (int i = from; i < to; ++i) C[i] = A[i] + B[i];
  }
#pragma omp parallel for ordered schedule(static, 64)
  for (int i = quarter; i < half; ++i) {
    C[i] = A[i] + B[i];
#pragma omp ordered
    last = i;
  }
#pragma omp parallel num_threads(2)
  {
    int part = omp_get_thread_num(), parts = omp_get_num_threads(), rest = N - half;
    int from = half + rest * part / parts, to = half + rest * (part + 1) / parts;
#pragma omp parallel for num_threads(2)
    for (int i = from; i < to; ++i) C[i] = A[i] + B[i];
  }
  if (half > quarter && last != half - 1) C[0] = 1e30f;
}
