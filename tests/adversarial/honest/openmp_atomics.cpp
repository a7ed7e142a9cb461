// abi: c
// task: dot_product
// workloads: cpu_n262144
// does: sums with OpenMP threads that meet in an atomic variable.
#include <atomic>

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  std::atomic<double> total{0};
#pragma omp parallel
  {
    double sum = 0;
#pragma omp for nowait
    for (int i = 0; i < N; ++i) sum += double(X[i]) * Y[i];
    double known = total.load();
    while (!total.compare_exchange_weak(known, known + sum)) {
    }
  }
  *loss = float(total.load());
}
