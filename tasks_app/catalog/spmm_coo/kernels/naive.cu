// Zeros first; then a thread an element of A and a column of X, which adds its product to Y.
constexpr long long MOST_BLOCKS = 1 << 24;  // beyond, threads take several elements

__global__ void clear(long long count, float* Y) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) Y[i] = 0.0f;
}

__global__ void add_products(int nnz, int K, const float* values, const int* row_indices, const int* col_indices,
                             const float* X, float* Y) {
    const long long count = (long long)nnz * K, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const long long j = i / K, k = i % K;
        atomicAdd(&Y[row_indices[j] * (long long)K + k], values[j] * X[col_indices[j] * (long long)K + k]);
    }
}

static unsigned blocks_for(long long count, int threads) {
    const long long blocks = (count + threads - 1) / threads;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

extern "C" void spmm_coo(int row, int nnz, int K, const float* values, const int* row_indices, const int* col_indices,
                         const float* X, float* Y) {
    const int threads = 256;
    const long long size = (long long)row * K, products = (long long)nnz * K;
    clear<<<blocks_for(size, threads), threads>>>(size, Y);
    add_products<<<blocks_for(products, threads), threads>>>(nnz, K, values, row_indices, col_indices, X, Y);
}
