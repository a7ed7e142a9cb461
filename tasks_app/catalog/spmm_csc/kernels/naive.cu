// Zeros first; then a thread a column of A and a column of X, which adds its products to Y.
constexpr long long MOST_BLOCKS = 1 << 24;  // beyond, threads take several elements

__global__ void clear(long long count, float* Y) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) Y[i] = 0.0f;
}

__global__ void add_columns(int columns, int K, const float* values, const int* row_indices, const int* col_offsets,
                            const float* X, float* Y) {
    const long long count = (long long)columns * K, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const long long col = i / K, k = i % K;
        for (int j = col_offsets[col]; j < col_offsets[col + 1]; ++j)
            atomicAdd(&Y[row_indices[j] * (long long)K + k], values[j] * X[i]);
    }
}

static unsigned blocks_for(long long count, int threads) {
    const long long blocks = (count + threads - 1) / threads;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

extern "C" void spmm_csc(int rows, int columns, int K, const float* values, const int* row_indices, const int* col_offsets,
                         const float* X, float* Y) {
    const int threads = 256;
    const long long size = (long long)rows * K;
    clear<<<blocks_for(size, threads), threads>>>(size, Y);
    add_columns<<<blocks_for((long long)columns * K, threads), threads>>>(columns, K, values, row_indices, col_offsets, X, Y);
}
