// A thread a row; sums in float32.
#include <cuda_bf16.h>

__global__ void multiply_rows(int rows, const __nv_bfloat16* values, const int* col_indices, const int* row_offsets,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k)
        sum += __bfloat162float(values[k]) * __bfloat162float(x[col_indices[k]]);
    y[row] = __float2bfloat16(sum);
}

extern "C" void spmv_csr_bf16(int rows, const __nv_bfloat16* values, const int* col_indices, const int* row_offsets,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    const int threads = 128;
    const unsigned blocks = (unsigned)((rows + (long long)threads - 1) / threads);
    multiply_rows<<<blocks, threads>>>(rows, values, col_indices, row_offsets, x, y);
}
