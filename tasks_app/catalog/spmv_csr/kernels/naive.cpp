// One plain loop over the rows.
extern "C" void spmv_csr(int rows, const float* values, const int* col_indices, const int* row_offsets, const float* x, float* y) {
    for (int row = 0; row < rows; ++row) {
        float sum = 0.0f;
        for (int k = row_offsets[row]; k < row_offsets[row + 1]; ++k) sum += values[k] * x[col_indices[k]];
        y[row] = sum;
    }
}
