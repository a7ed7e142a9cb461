// task: vector_add
// workloads: n1024, n65536, n1, n4099_structured, n1000003_integers
// mode: ranked
// does: loads and stores four elements at once, and the last few one by one.
#include <cuda_runtime.h>

__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, at = 4 * i;
  if (at + 3 < N) {
    float4 a = reinterpret_cast<const float4*>(A)[i], b = reinterpret_cast<const float4*>(B)[i];
    reinterpret_cast<float4*>(C)[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    return;
  }
  for (; at < N; ++at) C[at] = A[at] + B[at];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add<<<(N + 1023) / 1024, 256>>>(A, B, C, N);
}
