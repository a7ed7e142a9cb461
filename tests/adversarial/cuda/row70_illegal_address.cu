// row: 70
// abi: c
// task: vector_add
// mode: test
// workloads: n65536
// stopped by: verdict RUNTIME_ERROR: illegal
// tries: is right, and then destroys its context, so that whoever runs next in it fails
#include "../common/add_cuda.h"

__global__ void corrupt(char* from) {
  for (size_t i = 0; i < 64; ++i) from[i << 40] = 1;
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add(A, B, C, N);
  corrupt<<<1, 1>>>(reinterpret_cast<char*>(C) + (size_t{1} << 44));
}
