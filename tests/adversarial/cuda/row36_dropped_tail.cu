// row: 36
// abi: c
// task: vector_add
// mode: ranked
// workloads: n4096, n4099_structured
// stopped by: verdict WRONG_RESULT: hidden
// stopped by: verdict WRONG_RESULT: wrong on N=
// tries: adds in whole vectors of four and forgets the tail, which no public workload has
#include <cuda_runtime.h>

__global__ void add(const float4* A, const float4* B, float4* C, int vectors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  float4 a = A[i], b = B[i];
  C[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add<<<(N / 4 + 255) / 256, 256>>>((const float4*)A, (const float4*)B, (float4*)C, N / 4);
}
