// task: vector_add
// workloads: n262144
// mode: quick
// raised at most: 12 x
// does: lets a second host thread launch half of the work, and joins it before it returns.
#include <cuda_runtime.h>

#include <thread>

__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}

static void launch(const float* A, const float* B, float* C, int N) {
  if (N > 0) add<<<(N + 255) / 256, 256>>>(A, B, C, N);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  int half = N / 2;
  std::thread other([=] { launch(A + half, B + half, C + half, N - half); });
  launch(A, B, C, half);
  other.join();
}
