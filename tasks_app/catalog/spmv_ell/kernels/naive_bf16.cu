// A thread a row; sums in float32.
#include <cuda_bf16.h>

__global__ void multiply_rows(int rows, int max_nnz_per_row, const __nv_bfloat16* values, const int* col_ids,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const long long first = row * max_nnz_per_row;
    float sum = 0.0f;
    for (int i = 0; i < max_nnz_per_row; ++i) {
        const int col = col_ids[first + i];
        if (col != -1) sum += __bfloat162float(values[first + i]) * __bfloat162float(x[col]);
    }
    y[row] = __float2bfloat16(sum);
}

extern "C" void spmv_ell_bf16(int rows, int max_nnz_per_row, const __nv_bfloat16* values, const int* col_ids,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    const int threads = 128;
    const unsigned blocks = (unsigned)((rows + (long long)threads - 1) / threads);
    multiply_rows<<<blocks, threads>>>(rows, max_nnz_per_row, values, col_ids, x, y);
}
