// One thread an element.
#include <cuda_bf16.h>

__global__ void add_elements(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int N) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < N) C[i] = __float2bfloat16(__bfloat162float(A[i]) + __bfloat162float(B[i]));
}

extern "C" void vector_add_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int N) {
    const int threads = 256;
    const unsigned blocks = (unsigned)((N + (long long)threads - 1) / threads);
    add_elements<<<blocks, threads>>>(A, B, C, N);
}
