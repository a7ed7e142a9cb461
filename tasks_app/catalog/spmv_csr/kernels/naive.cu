// A thread a row.
__global__ void multiply_rows(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k) sum += values[k] * x[col_indices[k]];
    y[row] = sum;
}

extern "C" void spmv_csr(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
    const int threads = 128;
    const unsigned blocks = (unsigned)((rows + (long long)threads - 1) / threads);
    multiply_rows<<<blocks, threads>>>(rows, values, col_indices, row_offsets, x, y);
}
