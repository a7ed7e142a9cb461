// task: vector_add
// workloads: n65536, n16777216
// mode: quick
// does: loads, adds and stores by instructions written out in PTX.
#include <cuda_runtime.h>

__global__ void add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  float a, b, c;
  asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(a) : "l"(A + i));
  asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(b) : "l"(B + i));
  asm("add.rn.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(C + i), "f"(c) : "memory");
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  add<<<(N + 255) / 256, 256>>>(A, B, C, N);
}
