// As in FP32, but into sums in float32, which are rounded at the end. Their memory is kept between calls.
#include <cuda_bf16.h>

__global__ void clear(int rows, float* sums) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row < rows) sums[row] = 0.0f;
}

__global__ void add_products(int nnz, const __nv_bfloat16* values, const int* row_indices, const int* col_indices,
                             const __nv_bfloat16* x, float* sums) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k < nnz) atomicAdd(&sums[row_indices[k]], __bfloat162float(values[k]) * __bfloat162float(x[col_indices[k]]));
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

extern "C" void spmv_coo_bf16(int rows, int nnz, const __nv_bfloat16* values, const int* row_indices, const int* col_indices,
                              const __nv_bfloat16* x, __nv_bfloat16* y) {
    const int threads = 256;
    const unsigned row_blocks = (unsigned)((rows + (long long)threads - 1) / threads);
    const unsigned blocks = (unsigned)((nnz + (long long)threads - 1) / threads);
    float* sums = scratch(rows);
    clear<<<row_blocks, threads>>>(rows, sums);
    add_products<<<blocks, threads>>>(nnz, values, row_indices, col_indices, x, sums);
    round_sums<<<row_blocks, threads>>>(rows, sums, y);
}
