// Zeros first; then a thread a column, which adds its products to their rows.
__global__ void clear(int rows, float* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row < rows) y[row] = 0.0f;
}

__global__ void add_columns(int columns, const float* values, const int* row_indices, const int* col_offsets, const float* x, float* y) {
    const long long col = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (col >= columns) return;
    for (int k = col_offsets[col]; k < col_offsets[col + 1]; ++k) atomicAdd(&y[row_indices[k]], values[k] * x[col]);
}

extern "C" void spmv_csc(int rows, int columns, const float* values, const int* row_indices, const int* col_offsets,
                         const float* x, float* y) {
    const int threads = 128;
    clear<<<(unsigned)((rows + (long long)threads - 1) / threads), threads>>>(rows, y);
    add_columns<<<(unsigned)((columns + (long long)threads - 1) / threads), threads>>>(columns, values, row_indices, col_offsets, x, y);
}
