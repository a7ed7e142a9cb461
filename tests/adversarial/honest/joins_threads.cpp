// abi: c
// task: vector_add
// workloads: cpu_n262144
// does: starts two threads in each call and joins them, and catches an exception of its own.
#include <stdexcept>
#include <thread>

static void part(const float* A, const float* B, float* C, int from, int to) {
  for (int i = from; i < to; ++i) C[i] = A[i] + B[i];
}

static int checked(int N) {
  try {
    if (N > 0) throw std::length_error("a size");
  } catch (const std::exception&) {
    return N / 2;
  }
  return 0;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  int middle = checked(N);
  std::thread first(part, A, B, C, 0, middle), second(part, A, B, C, middle, N);
  first.join();
  second.join();
}
