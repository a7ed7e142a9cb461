// Zeros first; then a thread an element, which adds its product to its row.
__global__ void clear(int rows, float* y) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row < rows) y[row] = 0.0f;
}

__global__ void add_products(int nnz, const float* values, const int* row_indices, const int* col_indices, const float* x, float* y) {
    const long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (k < nnz) atomicAdd(&y[row_indices[k]], values[k] * x[col_indices[k]]);
}

extern "C" void spmv_coo(int rows, int nnz, const float* values, const int* row_indices, const int* col_indices,
                         const float* x, float* y) {
    const int threads = 256;
    clear<<<(unsigned)((rows + (long long)threads - 1) / threads), threads>>>(rows, y);
    add_products<<<(unsigned)((nnz + (long long)threads - 1) / threads), threads>>>(nnz, values, row_indices, col_indices, x, y);
}
