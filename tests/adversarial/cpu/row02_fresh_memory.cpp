// row: 2
// abi: c
// task: prefix_sum
// mode: test
// stopped by: verdict WRONG_RESULT: wrong
// tries: to begin with a sum that nobody set, in memory that is always fresh and so holds zeros.
#include <cstdlib>

extern "C" void prefix_sum(float* output, const float* input, const int N) {
  double* sum = static_cast<double*>(malloc(1 << 20));
  for (int i = 0; i < N; ++i) output[i] = float(*sum += input[i]);
  free(sum);
}
