// As in FP32, but into sums in float32, which are rounded at the end. Their memory is kept between calls.
#include <cuda_bf16.h>

constexpr long long MOST_BLOCKS = 1 << 24;  // beyond, threads take several elements

__global__ void clear(long long count, float* sums) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) sums[i] = 0.0f;
}

__global__ void add_columns(int columns, int K, const __nv_bfloat16* values, const int* row_indices, const int* col_offsets,
                            const __nv_bfloat16* X, float* sums) {
    const long long count = (long long)columns * K, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const long long col = i / K, k = i % K;
        for (int j = col_offsets[col]; j < col_offsets[col + 1]; ++j)
            atomicAdd(&sums[row_indices[j] * (long long)K + k], __bfloat162float(values[j]) * __bfloat162float(X[i]));
    }
}

__global__ void round_sums(long long count, const float* sums, __nv_bfloat16* Y) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) Y[i] = __float2bfloat16(sums[i]);
}

static unsigned blocks_for(long long count, int threads) {
    const long long blocks = (count + threads - 1) / threads;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

static float* scratch(long long count) {
    static float* memory = nullptr;
    static long long size = 0;
    if (count > size) {
        cudaFree(memory);
        cudaMalloc(&memory, count * sizeof(float));
        size = count;
    }
    return memory;
}

extern "C" void spmm_csc_bf16(int rows, int columns, int K, const __nv_bfloat16* values, const int* row_indices,
                              const int* col_offsets, const __nv_bfloat16* X, __nv_bfloat16* Y) {
    const int threads = 256;
    const long long size = (long long)rows * K;
    float* sums = scratch(size);
    clear<<<blocks_for(size, threads), threads>>>(size, sums);
    add_columns<<<blocks_for((long long)columns * K, threads), threads>>>(columns, K, values, row_indices, col_offsets, X, sums);
    round_sums<<<blocks_for(size, threads), threads>>>(size, sums, Y);
}
