// As in FP32, but into sums in float32, which are rounded at the end. Their memory is kept between calls.
#include <cuda_bf16.h>

constexpr long long MOST_BLOCKS = 1 << 24;  // beyond, threads take several elements

__global__ void clear(long long count, float* sums) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) sums[i] = 0.0f;
}

__global__ void add_products(int nnz, int K, const __nv_bfloat16* values, const int* row_indices, const int* col_indices,
                             const __nv_bfloat16* X, float* sums) {
    const long long count = (long long)nnz * K, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const long long j = i / K, k = i % K;
        const float product = __bfloat162float(values[j]) * __bfloat162float(X[col_indices[j] * (long long)K + k]);
        atomicAdd(&sums[row_indices[j] * (long long)K + k], product);
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

extern "C" void spmm_coo_bf16(int rows, int nnz, int K, const __nv_bfloat16* values, const int* row_indices, const int* col_indices,
                              const __nv_bfloat16* X, __nv_bfloat16* Y) {
    const int threads = 256;
    const long long size = (long long)rows * K, products = (long long)nnz * K;
    float* sums = scratch(size);
    clear<<<blocks_for(size, threads), threads>>>(size, sums);
    add_products<<<blocks_for(products, threads), threads>>>(nnz, K, values, row_indices, col_indices, X, sums);
    round_sums<<<blocks_for(size, threads), threads>>>(size, sums, Y);
}
