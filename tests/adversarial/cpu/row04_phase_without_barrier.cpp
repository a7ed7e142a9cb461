// row: 4
// abi: c
// task: reverse_array
// mode: test
// stopped by: verdict WRONG_RESULT: data race
// tries: to go on to the second phase while other threads are still in the first.
#include <vector>

extern "C" void reverse_array(float* output, float* input, int N) {
  std::vector<float> copied(N);
#pragma omp parallel
  {
#pragma omp for nowait
    for (int i = 0; i < N; ++i) copied[i] = input[i];
#pragma omp for
    for (int i = 0; i < N; ++i) output[i] = copied[N - 1 - i];
  }
}
