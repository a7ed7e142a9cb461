// A thread an element of Y, neighbours in a row of Y.
constexpr long long MOST_BLOCKS = 1 << 24;  // beyond, threads take several elements

__global__ void multiply(int rows, int K, const float* values, const int* col_indices, const int* row_offsets,
                         const float* X, float* Y) {
    const long long count = (long long)rows * K, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const long long row = i / K, k = i % K;
        float sum = 0.0f;
        for (int j = row_offsets[row]; j < row_offsets[row + 1]; ++j)
            sum += values[j] * X[col_indices[j] * (long long)K + k];
        Y[i] = sum;
    }
}

extern "C" void spmm_csr(int rows, int K, const float* values, const int* col_indices, const int* row_offsets,
                         const float* X, float* Y) {
    const int threads = 256;
    const long long blocks = ((long long)rows * K + threads - 1) / threads;
    multiply<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), threads>>>(rows, K, values, col_indices, row_offsets, X, Y);
}
