// row: 63
// abi: c
// task: vector_add
// mode: test
// workloads: n1024
// stopped by: verdict COMPILE_ERROR
// tries: makes nvcc's front end instantiate without an end, in width as well as in depth
#include "../common/add_cuda.h"

template <int N, int M>
struct Bomb {
  static constexpr int value = Bomb<N + 1, 2 * M>::value + Bomb<N + 1, 2 * M + 1>::value;
};
__device__ int fuse = Bomb<0, 0>::value;

extern "C" void vector_add(const float* A, const float* B, float* C, int N) { add(A, B, C, N); }
