// abi: c
// task: dot_product
// workloads: cpu_n262144
// does: asks for flags; the first brings code that makes the process flush denormals when it is loaded.
// flags: -ffast-math -funroll-loops -mprefer-vector-width=256
extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  float sum = 0;
  for (int i = 0; i < N; ++i) sum += X[i] * Y[i];
  *loss = sum;
}
