// Zeros first; then each element adds its product to its row.
extern "C" void spmv_coo(int rows, int nnz, const float* values, const int* row_indices, const int* col_indices,
                         const float* x, float* y) {
    for (int row = 0; row < rows; ++row) y[row] = 0.0f;
    for (int k = 0; k < nnz; ++k) y[row_indices[k]] += values[k] * x[col_indices[k]];
}
