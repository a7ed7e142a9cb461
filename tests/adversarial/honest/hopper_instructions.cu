// task: vector_add
// workloads: n65536, n16777216
// mode: quick
// does: asks for flags, and on an H100 or H200 runs instructions that only a build for that very device has.
// flags: --use_fast_math -maxrregcount=64 -Xptxas=-dlcm=cg
#include <cuda_runtime.h>

#if __CUDA_ARCH__ == 900 && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "built for sm_90, not for sm_90a"
#endif

__global__ void __launch_bounds__(256) add(const float* A, const float* B, float* C, int N) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  asm volatile("wgmma.fence.sync.aligned;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < N; i += 256ll * gridDim.x) C[i] = A[i] + B[i];
}

extern "C" void vector_add(const float* A, const float* B, float* C, int N) {
  const int blocks = (N + 255) / 256;
  add<<<blocks < 65536 ? blocks : 65536, 256>>>(A, B, C, N);
}
