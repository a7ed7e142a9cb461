// As in FP32, but into sums in float32, which are rounded at the end. Their memory is kept between calls.
#include <cuda_bf16.h>

__global__ void clear(int rows, float* sums) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row < rows) sums[row] = 0.0f;
}

__global__ void add_columns(int columns, const __nv_bfloat16* values, const int* row_indices, const int* col_offsets,
                            const __nv_bfloat16* x, float* sums) {
    const long long col = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (col >= columns) return;
    for (int k = col_offsets[col]; k < col_offsets[col + 1]; ++k)
        atomicAdd(&sums[row_indices[k]], __bfloat162float(values[k]) * __bfloat162float(x[col]));
}

__global__ void round_sums(int rows, const float* sums, __nv_bfloat16* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row < rows) y[row] = __float2bfloat16(sums[row]);
}

static float* scratch(int rows) {
    static float* memory = nullptr;
    static int size = 0;
    if (rows > size) {
        cudaFree(memory);
        cudaMalloc(&memory, rows * sizeof(float));
        size = rows;
    }
    return memory;
}

extern "C" void spmv_csc_bf16(int rows, int columns, const __nv_bfloat16* values, const int* row_indices, const int* col_offsets,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    const int threads = 128;
    const unsigned row_blocks = (unsigned)((rows + (long long)threads - 1) / threads);
    const unsigned blocks = (unsigned)((columns + (long long)threads - 1) / threads);
    float* sums = scratch(rows);
    clear<<<row_blocks, threads>>>(rows, sums);
    add_columns<<<blocks, threads>>>(columns, values, row_indices, col_offsets, x, sums);
    round_sums<<<row_blocks, threads>>>(rows, sums, y);
}
