// One thread an element.
#include <cuda_bf16.h>

__global__ void scale_elements(const __nv_bfloat16* A, __nv_bfloat16* B, __nv_bfloat16 scalar, long long count) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count) B[i] = __float2bfloat16(__bfloat162float(scalar) * __bfloat162float(A[i]));
}

extern "C" void matrix_scalar_mul_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, __nv_bfloat16 scalar, int M, int N) {
    const int threads = 256;
    const long long count = (long long)M * N;
    scale_elements<<<(unsigned)((count + threads - 1) / threads), threads>>>(A, B, scalar, count);
}
