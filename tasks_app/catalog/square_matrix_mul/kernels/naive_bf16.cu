// One thread an element of C, reading its row of A and its column of B from global memory; the sum is in float32.
#include <cuda_bf16.h>

__global__ void multiply(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M) {
    const long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    if (column >= M || row >= M) return;
    float sum = 0.0f;
    for (long long k = 0; k < M; ++k) sum += __bfloat162float(A[row * M + k]) * __bfloat162float(B[k * M + column]);
    C[row * M + column] = __float2bfloat16(sum);
}

extern "C" void square_matrix_mul_bf16(__nv_bfloat16* A, __nv_bfloat16* B, __nv_bfloat16* C, int M) {
    const dim3 threads(32, 8);
    const dim3 blocks((M + threads.x - 1) / threads.x, (M + threads.y - 1) / threads.y);
    multiply<<<blocks, threads>>>(A, B, C, M);
}
