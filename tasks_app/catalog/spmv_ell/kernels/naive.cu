// A thread a row.
__global__ void multiply_rows(int rows, int max_nnz_per_row, const float* values, const int* col_ids, const float* x, float* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const long long first = row * max_nnz_per_row;
    float sum = 0.0f;
    for (int i = 0; i < max_nnz_per_row; ++i) {
        const int col = col_ids[first + i];
        if (col != -1) sum += values[first + i] * x[col];
    }
    y[row] = sum;
}

extern "C" void spmv_ell(int rows, int max_nnz_per_row, const float* values, const int* col_ids, const float* x, float* y) {
    const int threads = 128;
    const unsigned blocks = (unsigned)((rows + (long long)threads - 1) / threads);
    multiply_rows<<<blocks, threads>>>(rows, max_nnz_per_row, values, col_ids, x, y);
}
