// row: 4
// abi: c
// task: dot_product
// workloads: cpu_n4096
// mode: audit
// stopped by: verdict WRONG_RESULT: data race
// tries: the same before an audit, with a sum of each thread's own that is added at last.
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  double sum = 0;
#pragma omp parallel
  {
    double own = 0;
#pragma omp for nowait
    for (int i = 0; i < N; ++i) own += (double)X[i] * Y[i];
    sum += own;
  }
  *loss = (float)sum;
}
