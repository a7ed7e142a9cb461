// abi: c
// task: vector_add
// workloads: cpu_n262144
// does: keeps a buffer for each pointer that it has seen, and fills it anew in each call.
#include <map>
#include <vector>

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  static std::map<const float*, std::vector<float>> kept;
  std::vector<float>& copy = kept[A];
  copy.assign(A, A + N);
  for (int i = 0; i < N; ++i) C[i] = copy[i] + B[i];
}
