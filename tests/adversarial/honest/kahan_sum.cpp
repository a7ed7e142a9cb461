// abi: c
// task: dot_product
// workloads: cpu_n262144
// does: sums with compensation, in single precision.
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  float sum = 0, lost = 0;
  for (int i = 0; i < N; ++i) {
    float term = X[i] * Y[i] - lost;
    float next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  *loss = sum;
}
