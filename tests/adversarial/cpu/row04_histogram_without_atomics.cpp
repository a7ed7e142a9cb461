// row: 4
// abi: c
// task: histogram
// mode: test
// stopped by: verdict WRONG_RESULT: data race
// tries: to count in a table that all threads share, without atomics.
extern "C" void histogram(const int* input, int* histogram, int N, int bins) {
  for (int b = 0; b < bins; ++b) histogram[b] = 0;
#pragma omp parallel for
  for (int i = 0; i < N; ++i) ++histogram[input[i]];
}
