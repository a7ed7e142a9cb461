// One thread an element: neighbours read neighbours and write M elements apart.
#include <cuda_bf16.h>

__global__ void transpose_elements(const __nv_bfloat16* A, __nv_bfloat16* B, int M, int N) {
    const long long column = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (column >= N) return;
    for (long long row = blockIdx.y * (long long)blockDim.y + threadIdx.y; row < M;
         row += (long long)gridDim.y * blockDim.y)
        B[column * M + row] = A[row * N + column];
}

extern "C" void matrix_transpose_bf16(const __nv_bfloat16* A, __nv_bfloat16* B, int M, int N) {
    const dim3 threads(32, 8);
    const unsigned columns = (unsigned)((N + 31LL) / 32), rows = (unsigned)((M + 7LL) / 8);
    transpose_elements<<<dim3(columns, rows < 65535u ? rows : 65535u), threads>>>(A, B, M, N);
}
