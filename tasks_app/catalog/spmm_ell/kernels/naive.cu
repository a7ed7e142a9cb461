// A thread an element of Y, neighbours in a row of Y.
constexpr long long MOST_BLOCKS = 1 << 24;  // beyond, threads take several elements

__global__ void multiply(int rows, int max_nnz_per_row, int K, const float* values, const int* col_ids, const float* X,
                         float* Y) {
    const long long count = (long long)rows * K, step = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += step) {
        const long long first = i / K * max_nnz_per_row, k = i % K;
        float sum = 0.0f;
        for (int j = 0; j < max_nnz_per_row; ++j) {
            const int col = col_ids[first + j];
            if (col != -1) sum += values[first + j] * X[col * (long long)K + k];
        }
        Y[i] = sum;
    }
}

extern "C" void spmm_ell(int rows, int max_nnz_per_row, int K, const float* values, const int* col_ids, const float* X,
                         float* Y) {
    const int threads = 256;
    const long long blocks = ((long long)rows * K + threads - 1) / threads;
    multiply<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), threads>>>(rows, max_nnz_per_row, K, values, col_ids, X, Y);
}
