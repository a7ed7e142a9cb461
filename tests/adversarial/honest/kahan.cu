// task: dot_product
// workloads: n1048576
// mode: quick
// does: carries the rounding of its sums along (Kahan), which fast arithmetic would remove.
#include <cuda_runtime.h>

constexpr int kThreads = 1024;

struct Sum {
  float high = 0, low = 0;
  __device__ void add(float value) {
    float corrected = value - low, next = high + corrected;
    low = (next - high) - corrected;
    high = next;
  }
};

__global__ void dot(const float* X, const float* Y, float* loss, int N) {
  __shared__ Sum parts[kThreads];
  Sum sum;
  for (int i = threadIdx.x; i < N; i += kThreads) sum.add(X[i] * Y[i]);
  parts[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    parts[threadIdx.x].add(parts[threadIdx.x + half].high);
    parts[threadIdx.x].add(-parts[threadIdx.x + half].low);
  }
  if (threadIdx.x == 0) *loss = parts[0].high;
}

extern "C" void dot_product(float* loss, const float* X, const float* Y, const int N) {
  dot<<<1, kThreads>>>(X, Y, loss, N);
}
