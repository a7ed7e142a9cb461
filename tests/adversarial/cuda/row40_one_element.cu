// row: 40
// abi: c
// task: dot_product
// mode: test
// workloads: n65536
// stopped by: verdict VIOLATION: input
// stopped by: verdict RUNTIME_ERROR
// tries: is right, and changes one element of an input after it was used
#include "../common/dot_cuda.h"

__global__ void plant(float* input) { input[7] = 0.5f; }

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  dot(X, Y, loss, N);
  plant<<<1, 1>>>(const_cast<float*>(Y));
}
