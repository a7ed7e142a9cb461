// One thread an element of C, reading its row of A and its column of B from global memory; the sum is in float32.
#include <cuda_bf16.h>

__global__ void multiply(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K) {
    const long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (column >= N) return;
    for (long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y; row < M;
         row += (long long)gridDim.y * blockDim.y) {
        float sum = 0.0f;
        for (long long k = 0; k < K; ++k) sum += __bfloat162float(A[row * K + k]) * __bfloat162float(B[k * N + column]);
        C[row * N + column] = __float2bfloat16(sum);
    }
}

extern "C" void matrix_mul_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K) {
    const dim3 threads(32, 8);
    const unsigned rows = (M + threads.y - 1) / threads.y;
    const dim3 blocks((N + threads.x - 1) / threads.x, rows < 65535u ? rows : 65535u);
    multiply<<<blocks, threads>>>(A, B, C, M, N, K);
}
