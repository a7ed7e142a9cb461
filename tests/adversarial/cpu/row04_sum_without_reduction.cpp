// row: 4
// abi: c
// task: dot_product
// workloads: cpu_n4096, cpu_n65536
// stopped by: verdict WRONG_RESULT: data race
// tries: to sum in a loop without its reduction, which is right on one processor.
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  double sum = 0;
#pragma omp parallel for
  for (int i = 0; i < N; ++i) sum += (double)X[i] * Y[i];
  *loss = (float)sum;
}
