// abi: c
// task: vector_add
// workloads: cpu_n16384, cpu_n262144
// does: orders its threads by barriers, single, sections, critical, locks, reductions and scratch.
#include <omp.h>

#include <vector>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static omp_lock_t lock;
  static const bool made = (omp_init_lock(&lock), true);
  std::vector<double> own(omp_get_max_threads(), 0.0);
  std::vector<float> copied(N);
  float factor = 0, addend = 1;
  double sum = 0;
  int entered = 0, locked = 0, counted = 0, last = -1;
#pragma omp parallel
  {
#pragma omp single
    factor = 1;
#pragma omp sections
    {
#pragma omp section
      addend = 0;
#pragma omp section
      own[0] = 0;
    }
#pragma omp for schedule(dynamic, 512)
    for (int i = 0; i < N; ++i) copied[i] = factor * A[i] + addend;
#pragma omp for schedule(guided) reduction(+ : sum) lastprivate(last)
    for (int i = 0; i < N; ++i) {
      C[N - 1 - i] = copied[N - 1 - i] + B[N - 1 - i];
      sum += 1;
      last = i;
    }
    own[omp_get_thread_num()] += 1;
#pragma omp critical
    ++entered;
    omp_set_lock(&lock);
    ++locked;
    omp_unset_lock(&lock);
#pragma omp atomic
    counted += 1;
  }
  double threads = 0;
  for (double one : own) threads += one;
  bool right = made && sum == N && last == N - 1 && entered == locked && locked == counted;
  if (!right || threads != counted) C[0] = 1e30f;
}
